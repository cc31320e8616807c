#include "core/math/score_bound.h"

#include <algorithm>
#include <cmath>

namespace nearwise {
namespace {

constexpr double f32_smallest = 0x1p-149;  // what an underflowing f32 operation may lose
constexpr double f32_flushed = 0x1p-126;   // the same where denormal results become zero

// Lengths beyond this make squares overflow in f32.
constexpr double longest = 5e18;

// Rounded operations on the way from the packed elements to the score, and what an underflow may lose in
// each.
struct Arithmetic {
  double operations;
  double underflow;
};

Arithmetic arithmetic_of(Products products, double dim) {
  switch (products) {
    // dim products and dim additions, each rounded, in whatever order; a few more for bias and norms.
    case Products::f32: return {dim + 4, (dim + 4) * f32_smallest};
    case Products::flushed_f32: return {dim + 4, (3 * dim + 16) * f32_flushed};
    // Products are exact, unless they underflow; sums round, in whatever order, and flush denormal results to
    // zero.
    case Products::bf16: return {dim + 12, (3 * dim + 16) * f32_flushed};
    // Every product, and every sum of a group, loses less than 2^-23 of the sum of all absolute values; there
    // are no more groups than products, and each cuts the sum so far as well. Three parts of the bias are
    // among them, whose absolute values are its own and a little more.
    case Products::truncated: return {7 * dim + 80, (3 * dim + 16) * f32_flushed};
    // The sum, its products with both scales, the bias, the slack and two subtractions.
    case Products::scaled_integers: return {10, 4 * f32_smallest};
    // Exact integers, rounded once to f32.
    case Products::integers: break;
  }
  return {2, 0};
}

}  // namespace

ScoreBound::ScoreBound(Metric metric, Products products, std::size_t dim)
    : metric_(metric), per_row_(products == Products::scaled_integers), dim_(static_cast<double>(dim)) {
  const auto [operations, underflow] = arithmetic_of(products, dim_);
  product_error_ = operations * f32_unit / (1 - operations * f32_unit);
  underflow_ = underflow;
}

bool ScoreBound::holds_for(const Lengths& query, const Lengths& row) {
  return query.norm <= longest && row.norm <= longest;
}

double ScoreBound::limit_from_score(const Lengths& query, const Lengths& row, float score,
                                    float slack) const {
  double high = static_cast<double>(score) + score_error(query, row);
  if (per_row_) {
    high += std::min<double>(most_slack(query, row), slack) * row.residual;
    high += is_euclidean(metric_) ? row.residual * row.residual / 2 : product_shift(query, row);
  }
  double value = high;
  if (is_euclidean(metric_)) {
    const double root =
        std::sqrt(std::max(0.0, query.norm * query.norm + 2 * high)) + shift_error(query, row);
    value = root * root;
  } else if (metric_ == Metric::cosine) {
    value = std::max(0.0, 1 + high);
  }
  return with_blur(value);
}

}  // namespace nearwise
