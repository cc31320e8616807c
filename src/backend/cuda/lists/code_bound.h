// Error bound: what the score of a code proves about the reported distance of its reconstruction.
//
// A reconstruction y is the sum of its centroid c and codewords r, rounded to f32 once. With primes for
// vectors minus the centre, half the squared distance is, up to a constant of the query,
//
//     score = |y'|^2 / 2 - q'c' - q'r
//
// that is, a half norm per row, an offset per query and list, and a sum of table entries, one per part. All
// are computed in f64 and rounded to f32 once. The error consists of these roundings, those of the additions,
// and the rounding of y. docs/algorithms/inverted-file.md has the derivation. For inner_product the first
// term is absent.
#pragma once

#include <cstddef>
#include <span>

#include "backend/ops.h"
#include "core/math/score_bound.h"

namespace nearwise::gpu {

class CodeBound {
 public:
  // squares: |q'|^2 of every query, in f64.
  CodeBound(const ListCodec& codec, Metric metric, std::span<const float> centre,
            std::span<const double> squares);
  // The same for other queries.
  CodeBound of(std::span<const double> squares) const {
    CodeBound bound(*this);
    bound.squares_ = squares;
    return bound;
  }

  bool holds_for(std::size_t query) const;
  double limit_from_score(std::size_t query, float score) const;
  double limit_from_key(float key) const { return bound_.limit_from_key(key); }
  float cutoff(std::size_t query, double limit) const;

 private:
  double error(std::size_t query) const;

  const ScoreBound bound_;
  const Metric metric_;
  std::span<const double> squares_;
  const double dim_;
  const double parts_;
  // Upper bounds of norms over the index.
  double centroid_ = 0;        // minus the centre
  double given_centroid_ = 0;  // as stored
  double codewords_ = 0;       // sum over all parts
};

}  // namespace nearwise::gpu
