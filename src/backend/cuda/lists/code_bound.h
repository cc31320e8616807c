// What a score of a code proves of the reported distance of what it stands for.
//
// A row y is the sum of its centroid c and codewords r, rounded to f32 once. With primes for what has the centre subtracted, half
// the squared distance is, up to a constant of the query,
//
//     score = |y'|^2 / 2 - q'c' - q'r
//
// a number of the row, a number of query and list, and a sum over tables of the query, one entry per part. All are computed
// in f64 and rounded to f32 once, so that all that is lost are these roundings, those of the additions, and that y is
// not exactly c + r. docs/algorithms/inverted-file.md has the sum. For inner_product the first term is missing.
#pragma once

#include <cstddef>
#include <span>

#include "backend/ops.h"
#include "core/score_bound.h"

namespace nearwise::gpu {

class CodeBound {
 public:
  // squares: |q'|^2 of every query, in f64.
  CodeBound(const ListCodec& codec, Metric metric, std::span<const float> centre,
            std::span<const double> squares);

  bool holds_for(std::size_t query) const;
  double limit_from_score(std::size_t query, float score) const;
  double limit_from_key(float key) const { return bound_.limit_from_key(key); }
  float cutoff(std::size_t query, double limit) const;

 private:
  double error(std::size_t query) const;

  const ScoreBound bound_;
  const Metric metric_;
  const std::span<const double> squares_;
  const double dim_;
  const double parts_;
  // The longest of the index, or more.
  double centroid_ = 0;        // less the centre
  double given_centroid_ = 0;  // as it is
  double codewords_ = 0;       // of all parts together
};

}  // namespace nearwise::gpu
