// Bounds on the reported distance given an approximate score. Proof: docs/algorithms/certified-search.md.
//
// The scan computes a score per query and row: half the squared distance up to a constant of the query
// (euclidean metrics) or the negated product (inner_product, cosine), of vectors that were rounded when they
// were packed and in sums that are rounded too. ScoreBound bounds those errors, so that a vector is dropped
// only if it cannot be among the k best by its reported distance.
//
// Values are compared on the metric's own scale in f64: squared distance, negated product, or 1 - cos.
//
// What is constexpr runs in kernels too.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/distance.h"
#include "nearwise/types.h"

namespace nearwise {

// How the products of packed vectors are computed and added.
enum class Products : std::uint8_t {
  f32,          // every operation rounded to f32, in whatever order
  flushed_f32,  // the same, and denormal results may become zero; packed vectors hold no denormals
  bf16,         // exact products of bf16, added in f32 in whatever order; denormal results become zero
  truncated,    // exact products, added by tensor cores: aligned to the largest of a group, the rest cut off
  integers,     // exact, rounded to f32 at the end
  // Exact sums of 8-bit integers times the scales of both vectors. Their encoding loses so much, and so
  // differently from row to row, that a score makes up for the row's own residual: coarse_score().
  scaled_integers,
};

// Norms of a packed vector, or the maximum over several.
struct Lengths {
  double norm = 0;      // of the vector as packed
  double residual = 0;  // of its rounding error
};

constexpr Lengths longer(const Lengths& left, const Lengths& right) {
  return {left.norm > right.norm ? left.norm : right.norm,
          left.residual > right.residual ? left.residual : right.residual};
}

// `row` holds upper bounds over all rows concerned; smaller ones make the bound tighter.
class ScoreBound {
 public:
  ScoreBound(Metric metric, Products products, std::size_t dim);

  // Whether scores fit in f32. Otherwise scores are meaningless and every vector must be evaluated.
  static bool holds_for(const Lengths& query, const Lengths& row);

  // An upper bound of the row's value including the rounding of the report to f32: rows with a larger value
  // are reported as strictly worse than the row with that score, or with that exactly evaluated key.
  // slack: the largest slack_factor of that row's score, if any.
  double limit_from_score(const Lengths& query, const Lengths& row, float score,
                          float slack = std::numeric_limits<float>::infinity()) const;
  constexpr double limit_from_key(float key) const;

  // The largest score that a row within `limit` may have.
  constexpr float cutoff(const Lengths& query, const Lengths& row, double limit) const;

  // scaled_integers: the score of a row with residual r is that of the packed vectors minus slack_factor * r
  // (and r^2 / 2, euclidean metrics). A factor stays valid as the limit falls.
  constexpr float slack_factor(const Lengths& query, const Lengths& row, double limit) const;

 private:
  static constexpr double f32_unit = 0x1p-24;  // half a unit in the last place, relative
  static constexpr double f64_unit = 0x1p-53;
  // Two values this far apart, relatively, are reported as different f32 numbers, also after a square root.
  static constexpr double report_blur = 0x1p-20;
  // The same where the report is a denormal f32.
  static constexpr double report_floor = 0x1p-140;

  static constexpr double magnitude(double value) { return value < 0 ? -value : value; }
  static constexpr float rounded_up(double value);
  static constexpr double with_blur(double value) {
    return value + magnitude(value) * report_blur + report_floor;
  }

  // |(q - y) - (packed q - packed y)|: shifting by the centre rounds every element once, packing loses the
  // residuals.
  static constexpr double shift_error(const Lengths& query, const Lengths& row) {
    const double lost = query.residual + row.residual;
    return 1.001 * f32_unit * (query.norm + row.norm + lost) + lost;
  }
  // |q y - packed q packed y| for vectors that are packed without a shift.
  static constexpr double product_shift(const Lengths& query, const Lengths& row) {
    return query.residual * (row.norm + row.residual) + query.norm * row.residual;
  }
  constexpr double score_error(const Lengths& query, const Lengths& row) const;

  // What a cutoff still has to cover: all of the row's lengths, or all but a residual that its score covers.
  constexpr Lengths uncovered(const Lengths& row) const {
    return per_row_ ? Lengths{row.norm + row.residual, 0} : row;
  }
  // No slack_factor exceeds it.
  static constexpr double most_slack(const Lengths& query, const Lengths& row) {
    return 1.01 * (query.norm + row.norm + 2 * query.residual + row.residual);
  }

  Metric metric_;
  bool per_row_;  // scores make up for the residuals of rows
  double dim_;
  double product_error_;  // relative error of a sum of dim products
  double underflow_;      // what underflowing operations may lose of it
};

// The f32 number above the one that is nearest; the largest has none above.
constexpr float ScoreBound::rounded_up(double value) {
  constexpr float most = std::numeric_limits<float>::max();
  if (value >= most) return most;
  const auto nearest = static_cast<float>(value);
  if (nearest == most) return most;
  if (nearest == 0) return std::numeric_limits<float>::denorm_min();
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  return std::bit_cast<float>(nearest > 0 ? bits + 1 : bits - 1);
}

// |computed score - score in exact arithmetic|: of the packed vectors for the euclidean metrics, where
// shift_error covers the packing, and of the vectors themselves for the others.
constexpr double ScoreBound::score_error(const Lengths& query, const Lengths& row) const {
  const double sums_in_f64 = (dim_ + 16) * 2 * f64_unit;  // norms and reported sums
  const double product = query.norm * row.norm;
  const double slack = per_row_ ? most_slack(query, row) * row.residual : 0;
  switch (metric_) {
    case Metric::sqeuclidean:
    case Metric::euclidean: {
      const double terms = product + row.norm * row.norm / 2 + slack;
      const double constants = (query.norm * query.norm + row.norm * row.norm) * sums_in_f64;
      return product_error_ * terms + constants + underflow_;
    }
    case Metric::inner_product:
      return product_error_ * (product + slack) + sums_in_f64 * (product + product_shift(query, row)) +
             product_shift(query, uncovered(row)) + underflow_;
    case Metric::cosine: break;
  }
  // Vectors are scaled to length 1 up to the rounding of their elements, as are the quotients reported; what
  // packing loses makes them longer than that by at most the residual.
  const double unit_product = (1.001 + query.residual) * (1.001 + row.residual);
  return (unit_product + slack) * product_error_ + 8 * f32_unit + 2 * sums_in_f64 +
         product_shift(query, uncovered(row)) + underflow_;
}

constexpr double ScoreBound::limit_from_key(float key) const {
  double value = key;
  if (metric_ == Metric::euclidean) value *= value;
  return with_blur(value);
}

constexpr float ScoreBound::cutoff(const Lengths& query, const Lengths& row, double limit) const {
  if (limit == std::numeric_limits<double>::infinity()) return std::numeric_limits<float>::max();
  double score = limit;
  if (is_euclidean(metric_)) {
    const double root = std::sqrt(limit) + shift_error(query, uncovered(row));
    score = (root * root - query.norm * query.norm) / 2;
  } else if (metric_ == Metric::cosine) {
    score = limit - 1;
  }
  return rounded_up(score + score_error(query, row) + magnitude(score) * 4 * f64_unit);
}

constexpr float ScoreBound::slack_factor(const Lengths& query, const Lengths& row, double limit) const {
  if (!per_row_) return 0;
  double factor = query.norm + query.residual;
  if (is_euclidean(metric_)) {
    // No row is farther away than the sum of the lengths.
    const double farthest = query.norm + query.residual + row.norm + row.residual;
    const double root = std::sqrt(limit);
    factor = (root < farthest ? root : farthest) + shift_error(query, uncovered(row));
  }
  return rounded_up(factor * (1 + 4 * f64_unit));
}

}  // namespace nearwise
