// What a score proves about the reported distance. The proof is docs/algorithms/certified-search.md.
//
// The scan computes a score per query and row: half the squared distance up to a constant of the query (euclidean
// metrics) or the negated product (inner_product, cosine), of vectors that were rounded when they were packed and in sums
// that are rounded too. Here is all that is known of those errors, so that a row is dropped only if it cannot be among
// the k best by its reported distance.
//
// Values are compared on the metric's own scale in f64: squared distance, negated product, or 1 - cos.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nearwise/types.h"

namespace nearwise {

// How the products of packed vectors are computed and added.
enum class Products : std::uint8_t {
  f32,          // every operation rounded to f32, in whatever order
  flushed_f32,  // the same, and denormal results may become zero; packed vectors hold no denormals
  bf16,         // exact products of bf16, added in f32 in whatever order; denormal results become zero
  truncated,    // exact products, added by tensor cores: aligned to the largest of a group, the rest cut off
  integers,     // exact, rounded to f32 at the end
};

// Of a packed vector, or the largest of several.
struct Lengths {
  double norm = 0;      // of the vector as packed
  double residual = 0;  // of what its rounding lost
};

constexpr Lengths longer(const Lengths& left, const Lengths& right) {
  return {left.norm > right.norm ? left.norm : right.norm,
          left.residual > right.residual ? left.residual : right.residual};
}

// `row`: no row concerned is longer. Smaller lengths make the bound tighter.
class ScoreBound {
 public:
  ScoreBound(Metric metric, Products products, std::size_t dim);

  // Whether f32 can hold the scores at all. Where it cannot, no score means anything and rows must be evaluated.
  static bool holds_for(const Lengths& query, const Lengths& row);

  // A value that is at least the row's own plus everything that reporting in f32 could blur: rows whose value exceeds
  // it are reported as strictly worse than the row of that score, or of that exactly evaluated key.
  double limit_from_score(const Lengths& query, const Lengths& row, float score) const;
  double limit_from_key(float key) const;

  // The largest score that a row within `limit` may have.
  float cutoff(const Lengths& query, const Lengths& row, double limit) const;

 private:
  double score_error(const Lengths& query, const Lengths& row) const;

  Metric metric_;
  double dim_;
  double product_error_;  // relative error of a sum of dim products
  double underflow_;      // what underflowing operations may lose of it
};

}  // namespace nearwise
