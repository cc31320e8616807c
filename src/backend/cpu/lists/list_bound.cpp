#include "backend/cpu/lists/list_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/distance.h"

namespace nearwise::cpu {
namespace {

constexpr double unit = 0x1p-24;  // what one operation in f32 rounds, relatively
constexpr double double_unit = 0x1p-53;
constexpr double tiny = 0x1p-120;  // more than all that may underflow

// Beyond this, squares come near the end of f32.
constexpr double longest_vector = 1e18;
// Rows this short are no quotients' denominators.
constexpr double least_length = 1e-18;

// A row is taken to be no shorter than this part of the longest centroid: those of cosine have length 1.
constexpr double shortest_share = 0.25;

constexpr double report_blur = 0x1p-20;  // as in ScoreBound
constexpr double report_floor = 0x1p-140;

// |score as computed - score in exact arithmetic|. row: no shorter than its codewords.
double error_of(Metric metric, Products products, double dim, const ResidualLengths& longest,
                const Lengths& query, const Lengths& row, ScoreForm form) {
  const double centroid = longest.centroid;
  const double packed = row.norm;
  const double codeword = packed + row.residual;
  // Shifting the query by the centre rounded every element once, packing lost the residual.
  const double query_error = query.residual + 1.001 * unit * (query.norm + query.residual);
  const double length = query.norm + query_error;
  const double row_error = 1.001 * unit * (longest.given_centroid + codeword);  // y is a sum in f32
  // q'r against the product of packed vectors, which is added up in f32 in whatever order.
  const double operations = products == Products::f32 ? 2 * dim + 8 : dim + 16;
  double error = 2 * operations * unit * query.norm * packed;
  if (form == ScoreForm::packed)
    error += query_error * packed + length * row.residual;
  else  // tables of what packing lost, of a query rounded to f32, and their sum
    error +=
        (4 * static_cast<double>(longest.operations) + 32) * unit * (length * codeword + query.norm * packed);
  // The row that is reported is not exactly c + r.
  error += length * row_error;
  // One number per query and list, and the additions that put the score together.
  error += 8 * unit * length * (centroid + codeword);
  error += (dim + 16) * 4 * double_unit * length * (centroid + codeword);
  if (is_euclidean(metric)) {
    const double whole = centroid + codeword;
    error += (static_cast<double>(longest.operations) + 16) * 2 * unit * whole * whole;
    // A scan in f32 begins with the sum of tables and subtracts product after product from it: each rounds all of it. One of
    // bf16 adds up the products first.
    const double roundings = (dim + 16) * unit;
    if (products != Products::bf16) error += roundings / (1 - roundings) * whole * whole / 2;
    error += whole * row_error + row_error * row_error;
    error += (dim + 16) * 4 * double_unit * (length * length + whole * whole);
  }
  return 1.01 * error + dim * tiny;
}

// Of cosine: of the product of a row with a query of length 1 by tables, and of the row's length by its term.
double product_error_of(double dim, const ResidualLengths& longest) {
  const double codeword = longest.codewords.norm + longest.codewords.residual;
  const double whole = longest.centroid + codeword;
  // Query, entries and their sum; one number per query and list, and its addition; the row is a sum in f32, and its length
  // is rounded to f32.
  const double rounded = (2 * static_cast<double>(longest.operations) + 16) * codeword + 8 * whole +
                         2.002 * (longest.given_centroid + codeword) + 2 * whole;
  return 1.01 * (rounded * unit + (dim + 16) * 4 * double_unit * whole) + dim * tiny;
}

}  // namespace

ListBound::ListBound(Metric metric, Products products, std::size_t dim, const ResidualLengths& lengths,
                     std::span<const double> squares)
    : bound_(metric, products, dim),
      metric_(metric),
      products_(products),
      dim_(static_cast<double>(dim)),
      residual_(true),
      longest_(lengths),
      squares_(squares) {
  if (metric != Metric::cosine) return;
  const double whole = lengths.centroid + lengths.codewords.norm + lengths.codewords.residual;
  // In f64: it matters most where the row is short.
  square_error_ = (dim_ + 16) * 4 * double_unit * whole * whole;
  shortest_row_ = shortest_share * lengths.centroid;
}

double ListBound::product_error() const {
  return product_error_of(dim_, longest_) + std::sqrt(square_error_);
}

double ListBound::error(const Lengths& query, const Lengths& row, ScoreForm form) const {
  if (metric_ != Metric::cosine) return error_of(metric_, products_, dim_, longest_, query, row, form);
  return (product_error_of(dim_, longest_) + square_error_ / shortest_row_) / shortest_row_ + 16 * unit +
         (dim_ + 16) * 4 * double_unit;
}

bool ListBound::holds_for(const Lengths& query, const Lengths& row) const {
  if (!residual_) return ScoreBound::holds_for(query, row);
  if (metric_ == Metric::cosine && !(shortest_row_ > least_length)) return false;
  return query.norm <= longest_vector && longest_.given_centroid <= longest_vector &&
         longest_.centroid <= longest_vector && longest_.codewords.norm <= longest_vector;
}

double ListBound::limit_from_score(std::size_t query, const Lengths& lengths, const Lengths& row, float score,
                                   ScoreForm form) const {
  if (!residual_) return bound_.limit_from_score(lengths, row, score);
  const double high = static_cast<double>(score) + error(lengths, row, form);
  const double value = is_euclidean(metric_)       ? std::max(0.0, squares_[query] + 2 * high)
                       : metric_ == Metric::cosine ? std::max(0.0, 1 + high)
                                                   : high;
  return value + std::abs(value) * report_blur + report_floor;
}

float ListBound::cutoff(std::size_t query, const Lengths& lengths, const Lengths& row, double limit,
                        ScoreForm form) const {
  if (!residual_) return bound_.cutoff(lengths, row, limit);
  constexpr float most = std::numeric_limits<float>::max();
  if (limit == std::numeric_limits<double>::infinity()) return most;
  const double exact = is_euclidean(metric_)       ? (limit - squares_[query]) / 2
                       : metric_ == Metric::cosine ? limit - 1
                                                   : limit;
  const double score = exact + error(lengths, row, form);
  if (score >= static_cast<double>(most)) return most;
  return std::nextafter(static_cast<float>(score), most);
}

}  // namespace nearwise::cpu
