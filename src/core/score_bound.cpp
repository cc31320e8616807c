#include "core/score_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/distance.h"

namespace nearwise {
namespace {

constexpr double f32_unit = 0x1p-24;       // half a unit in the last place, relative
constexpr double f32_smallest = 0x1p-149;  // what an underflowing f32 operation may lose
constexpr double f32_flushed = 0x1p-126;   // the same where denormal results become zero
constexpr double f64_unit = 0x1p-53;
constexpr double infinity = std::numeric_limits<double>::infinity();

// Two values this far apart, relatively, are reported as different f32 numbers, also after a square root.
constexpr double report_blur = 0x1p-20;
// The same where the report is a denormal f32.
constexpr double report_floor = 0x1p-140;

// Lengths beyond this make squares overflow in f32.
constexpr double longest = 5e18;

// |(q - y) - (packed q - packed y)|: shifting by the centre rounds every element once, packing loses the residuals.
double shift_error(const Lengths& query, const Lengths& row) {
  const double lost = query.residual + row.residual;
  return 1.001 * f32_unit * (query.norm + row.norm + lost) + lost;
}

// |q y - packed q packed y| for vectors that are packed without a shift.
double product_shift(const Lengths& query, const Lengths& row) {
  return query.residual * (row.norm + row.residual) + query.norm * row.residual;
}

// Rounded operations on the way from the packed elements to the score, and what an underflow may lose in each.
struct Arithmetic {
  double operations;
  double underflow;
};

Arithmetic arithmetic_of(Products products, double dim) {
  switch (products) {
    // dim products and dim additions, each rounded, in whatever order; a few more for bias and norms.
    case Products::f32: return {dim + 4, (dim + 4) * f32_smallest};
    case Products::flushed_f32: return {dim + 4, (3 * dim + 16) * f32_flushed};
    // Products are exact, unless they underflow; sums round, in whatever order, and flush denormal results to zero.
    case Products::bf16: return {dim + 12, (3 * dim + 16) * f32_flushed};
    // Every product, and every sum of a group, loses less than 2^-23 of the sum of all absolute values; there are no
    // more groups than products, and each cuts the sum so far as well. Three parts of the bias are among them, whose
    // absolute values are its own and a little more.
    case Products::truncated: return {7 * dim + 80, (3 * dim + 16) * f32_flushed};
    // Exact integers, rounded once to f32.
    case Products::integers: break;
  }
  return {2, 0};
}

float round_up(double value) {
  if (value >= std::numeric_limits<float>::max()) return std::numeric_limits<float>::max();
  return std::nextafter(static_cast<float>(value), std::numeric_limits<float>::max());
}

}  // namespace

ScoreBound::ScoreBound(Metric metric, Products products, std::size_t dim)
    : metric_(metric), dim_(static_cast<double>(dim)) {
  const auto [operations, underflow] = arithmetic_of(products, dim_);
  product_error_ = operations * f32_unit / (1 - operations * f32_unit);
  underflow_ = underflow;
}

bool ScoreBound::holds_for(const Lengths& query, const Lengths& row) {
  return query.norm <= longest && row.norm <= longest;
}

// |computed score - score in exact arithmetic|: of the packed vectors for the euclidean metrics, where shift_error
// covers the packing, and of the vectors themselves for the others.
double ScoreBound::score_error(const Lengths& query, const Lengths& row) const {
  const double sums_in_f64 = (dim_ + 16) * 2 * f64_unit;  // norms and reported sums
  const double product = query.norm * row.norm;
  switch (metric_) {
    case Metric::sqeuclidean:
    case Metric::euclidean: {
      const double terms = product + row.norm * row.norm / 2;
      const double constants = (query.norm * query.norm + row.norm * row.norm) * sums_in_f64;
      return product_error_ * terms + constants + underflow_;
    }
    case Metric::inner_product:
      return product_error_ * product + sums_in_f64 * (product + product_shift(query, row)) +
             product_shift(query, row) + underflow_;
    case Metric::cosine: break;
  }
  // Vectors are scaled to length 1 up to the rounding of their elements, as are the quotients reported; what packing
  // loses makes them longer than that by at most the residual.
  const double unit_product = (1.001 + query.residual) * (1.001 + row.residual);
  return unit_product * product_error_ + 8 * f32_unit + 2 * sums_in_f64 + product_shift(query, row) +
         underflow_;
}

double ScoreBound::limit_from_score(const Lengths& query, const Lengths& row, float score) const {
  const double high = static_cast<double>(score) + score_error(query, row);
  double value = high;
  if (is_euclidean(metric_)) {
    const double root =
        std::sqrt(std::max(0.0, query.norm * query.norm + 2 * high)) + shift_error(query, row);
    value = root * root;
  } else if (metric_ == Metric::cosine) {
    value = std::max(0.0, 1 + high);
  }
  return value + std::abs(value) * report_blur + report_floor;
}

double ScoreBound::limit_from_key(float key) const {
  double value = key;
  if (metric_ == Metric::euclidean) value *= value;
  return value + std::abs(value) * report_blur + report_floor;
}

float ScoreBound::cutoff(const Lengths& query, const Lengths& row, double limit) const {
  if (limit == infinity) return std::numeric_limits<float>::max();
  double score = limit;
  if (is_euclidean(metric_)) {
    const double root = std::sqrt(limit) + shift_error(query, row);
    score = (root * root - query.norm * query.norm) / 2;
  } else if (metric_ == Metric::cosine) {
    score = limit - 1;
  }
  return round_up(score + score_error(query, row) + std::abs(score) * 4 * f64_unit);
}

}  // namespace nearwise
