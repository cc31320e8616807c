#include "backend/cpu/lists/list_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/distance.h"

namespace nearwise::cpu {
namespace {

constexpr double unit = 0x1p-24;  // relative rounding error of an f32 operation
constexpr double double_unit = 0x1p-53;
constexpr double tiny = 0x1p-120;  // bounds the absolute error of underflow

// Longer vectors have squares near the f32 range limit.
constexpr double max_length = 1e18;
// Shorter vectors are not divided by.
constexpr double min_length = 1e-18;

// Vectors shorter than this share of the longest centroid get no cosine score. Centroids of cosine have
// length 1.
constexpr double min_length_share = 0.25;

constexpr double report_blur = 0x1p-20;  // as in ScoreBound
constexpr double report_floor = 0x1p-140;

// Bound of |computed score - exact score|. row: upper bounds of the lengths of the codewords.
double error_of(Metric metric, Products products, double dim, const ResidualLengths& longest,
                const Lengths& query, const Lengths& row, ScoreForm form) {
  const double centroid = longest.centroid;
  const double packed = row.norm;
  const double codeword = packed + row.residual;
  // Subtracting the centre rounds every element of the query once; packing rounds it by the residual.
  const double query_error = query.residual + 1.001 * unit * (query.norm + query.residual);
  const double length = query.norm + query_error;
  const double row_error = 1.001 * unit * (longest.given_centroid + codeword);  // y is a sum in f32
  // q'r against the product of packed vectors, summed in f32 in any order.
  const double operations = products == Products::f32 ? 2 * dim + 8 : dim + 16;
  double error = 2 * operations * unit * query.norm * packed;
  if (form == ScoreForm::packed)
    error += query_error * packed + length * row.residual;
  else  // correction tables of a query rounded to f32, and their sum
    error +=
        (4 * static_cast<double>(longest.operations) + 32) * unit * (length * codeword + query.norm * packed);
  // The reconstruction is c + r rounded to f32.
  error += length * row_error;
  // Offset of query and list, and the additions of the score.
  error += 8 * unit * length * (centroid + codeword);
  error += (dim + 16) * 4 * double_unit * length * (centroid + codeword);
  if (is_euclidean(metric)) {
    const double whole = centroid + codeword;
    error += (static_cast<double>(longest.operations) + 16) * 2 * unit * whole * whole;
    // An f32 scan starts with the bias and subtracts one product at a time, each rounding the whole sum. A
    // bf16 scan sums the products first.
    const double roundings = (dim + 16) * unit;
    if (products != Products::bf16) error += roundings / (1 - roundings) * whole * whole / 2;
    error += whole * row_error + row_error * row_error;
    error += (dim + 16) * 4 * double_unit * (length * length + whole * whole);
  }
  return 1.01 * error + dim * tiny;
}

// For cosine: error of the product with a query of length 1, by tables, and of the norm.
double product_error_of(double dim, const ResidualLengths& longest) {
  const double codeword = longest.codewords.norm + longest.codewords.residual;
  const double whole = longest.centroid + codeword;
  // Query, table entries and their sum; offset of query and list, and its addition; the reconstruction, a sum
  // in f32; its norm, rounded to f32.
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
  // Error of the squared norm, computed in f64; it matters most for short vectors.
  square_error_ = (dim_ + 16) * 4 * double_unit * whole * whole;
  min_row_length_ = min_length_share * lengths.centroid;
}

double ListBound::product_error() const {
  return product_error_of(dim_, longest_) + std::sqrt(square_error_);
}

double ListBound::error(const Lengths& query, const Lengths& row, ScoreForm form) const {
  if (metric_ != Metric::cosine) return error_of(metric_, products_, dim_, longest_, query, row, form);
  return (product_error_of(dim_, longest_) + square_error_ / min_row_length_) / min_row_length_ + 16 * unit +
         (dim_ + 16) * 4 * double_unit;
}

bool ListBound::holds_for(const Lengths& query, const Lengths& row) const {
  if (!residual_) return ScoreBound::holds_for(query, row);
  if (metric_ == Metric::cosine && !(min_row_length_ > min_length)) return false;
  return query.norm <= max_length && longest_.given_centroid <= max_length &&
         longest_.centroid <= max_length && longest_.codewords.norm <= max_length;
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
