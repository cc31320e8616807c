// Error bound: what the score of a vector in a list proves about its reported distance. Two cases: vectors
// that were decoded and packed whole (ScoreBound), and product codes that are multiplied without their
// centroid.
//
// The second: a reconstruction y is the f32 sum of its centroid c and codewords r. With primes for vectors
// minus the centre, half the squared distance is, up to a constant of the query,
//
//     score = |c' + r|^2 / 2 - q'c' - q'r
//
// The last product is computed from packed vectors, as in every scan; the first term is a sum over tables of
// the list, the second an offset per query and list. All errors are absolute and bounded by the longest
// centroid of the index and by the codewords: `row` below holds upper bounds of the length of r as packed and
// of its packing error. docs/algorithms/inverted-file.md has the derivation.
//
// For cosine the score is -qy / |y| with a query of length 1. Its error is that of the product divided by the
// length, hence small only for vectors no shorter than min_row_length(). Shorter reconstructions, which are
// rare, get no score. Only table scans compute such scores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/ops.h"
#include "core/math/score_bound.h"
#include "nearwise/matrix.h"

namespace nearwise::cpu {

// Upper bounds of norms over the index.
struct ResidualLengths {
  double centroid = 0;         // minus the centre
  double given_centroid = 0;   // as stored
  Lengths codewords;           // over all parts, as packed
  std::size_t operations = 0;  // rounding operations of a sum of table entries
};

// Maximum number of f32 operations of a sum of table entries.
inline std::size_t table_operations(const ListCodec& codec) {
  return codec.parts() + (codec.encoding == ListEncoding::lsq ? codec.dim : codec.dim / codec.parts()) + 1;
}

// Form of a product code's score: as the scan computes it, or with the packing error corrected. The error
// bound of `corrected` also holds for sums of the query's own tables.
enum class ScoreForm : std::uint8_t { packed, corrected };

class ListBound {
 public:
  // Vectors that are packed whole.
  ListBound(Metric metric, Products products, std::size_t dim)
      : bound_(metric, products, dim), metric_(metric) {}
  // Product codes. squares: |q'|^2 of every query, in f64; unused for cosine.
  ListBound(Metric metric, Products products, std::size_t dim, const ResidualLengths& lengths,
            std::span<const double> squares);

  // For cosine: a vector of any length exceeds a limit if its product with the query, by tables, is below
  // limit times its norm by more than product_error().
  double min_row_length() const { return min_row_length_; }
  double product_error() const;

  // Whether scores have a finite error bound.
  bool holds_for(const Lengths& query, const Lengths& row) const;
  // As in ScoreBound.
  double limit_from_score(std::size_t query, const Lengths& lengths, const Lengths& row, float score,
                          ScoreForm form = ScoreForm::packed) const;
  double limit_from_key(float key) const { return bound_.limit_from_key(key); }
  float cutoff(std::size_t query, const Lengths& lengths, const Lengths& row, double limit,
               ScoreForm form = ScoreForm::packed) const;

 private:
  double error(const Lengths& query, const Lengths& row, ScoreForm form) const;

  ScoreBound bound_;
  Metric metric_;
  Products products_ = Products::f32;
  double dim_ = 0;
  bool residual_ = false;
  ResidualLengths longest_;
  double min_row_length_ = 0;
  double square_error_ = 0;  // of the squared norm, for cosine
  std::span<const double> squares_;
};

}  // namespace nearwise::cpu
