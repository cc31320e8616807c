// What a score in f32 proves about the reported distance. The proof is docs/algorithms/certified-search.md.
//
// The scan computes a score per query and row: half the squared distance up to a constant of the query (euclidean
// metrics) or the negated product (inner_product, cosine), in f32 and with rounding errors. Here is all that is known
// of those errors, so that a row is dropped only if it cannot be among the k best by its reported distance.
//
// Values are compared on the metric's own scale in f64: squared distance, negated product, or 1 - cos.
#pragma once

#include <cstddef>

#include "nearwise/types.h"

namespace nearwise::cpu {

// row_norm: no row concerned is longer. A smaller one makes the bound tighter.
class ScoreBound {
 public:
  ScoreBound(Metric metric, std::size_t dim);

  // Whether f32 can hold the scores at all. Where it cannot, no score means anything and rows must be evaluated.
  static bool holds_for(double query_norm, double row_norm);

  // A value that is at least the row's own plus everything that reporting in f32 could blur: rows whose value exceeds
  // it are reported as strictly worse than the row of that score, or of that exactly evaluated key.
  double limit_from_score(double query_norm, double row_norm, float score) const;
  double limit_from_key(float key) const;

  // The largest score that a row within `limit` may have.
  float cutoff(double query_norm, double row_norm, double limit) const;

 private:
  double score_error(double query_norm, double row_norm) const;

  Metric metric_;
  double dim_;
  double product_error_;  // relative error of an f32 sum of dim products
};

}  // namespace nearwise::cpu
