// What a score of a row in a list proves about its reported distance: for rows that were decoded and packed whole
// (ScoreBound), or for product codes that are multiplied without their centroid.
//
// The latter: a row y is the f32 sum of its centroid c and codewords r. With primes for what has the centre subtracted,
// half the squared distance is, up to a constant of the query,
//
//     score = |c' + r|^2 / 2 - q'c' - q'r
//
// The last product is computed of packed vectors, as in every scan; the first term is a sum over tables of the list, the
// second one number of query and list. All errors are absolute and bounded by the longest centroid of the index and by the
// codewords of the rows: `row` below has the length of r as it was packed, and of what packing lost of it, or more.
// docs/algorithms/inverted-file.md has the sum.
//
// Of cosine, the score is -qy / |y| of a query of length 1. Its error is that of the product over the length, so that it is
// small only for rows that are no shorter than shortest_row(); shorter ones, which hardly any code stands for, have no
// score. Only tables make such scores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/ops.h"
#include "core/score_bound.h"
#include "nearwise/matrix.h"

namespace nearwise::cpu {

// The longest of an index, or more.
struct ResidualLengths {
  double centroid = 0;         // with the centre subtracted
  double given_centroid = 0;   // as it is
  Lengths codewords;           // of all parts together, as packed
  std::size_t operations = 0;  // rounded ones on the way to a sum of tables
};

// Operations in f32 between a code and the sum of its tables' entries, at most.
inline std::size_t table_operations(const ListCodec& codec) {
  return codec.parts() + (codec.is_additive() ? codec.dim : codec.dim / codec.parts()) + 1;
}

// How far a score of product codes was taken: as the scan computes it, or with what packing lost added back.
// Sums of tables that know the query have the errors of the latter, or less.
enum class ScoreForm : std::uint8_t { packed, corrected };

class ListBound {
 public:
  // Rows that are packed whole.
  ListBound(Metric metric, Products products, std::size_t dim)
      : bound_(metric, products, dim), metric_(metric) {}
  // Product codes. squares: |q'|^2 of every query, in f64; of cosine they are not looked at.
  ListBound(Metric metric, Products products, std::size_t dim, const ResidualLengths& lengths,
            std::span<const double> squares);

  // Of cosine. A row of any length whose product with the query, as tables have it, falls short of a limit times its length, as
  // terms have it, by more than product_error() is beyond the limit.
  double shortest_row() const { return shortest_row_; }
  double product_error() const;

  // Whether scores mean anything.
  bool holds_for(const Lengths& query, const Lengths& row) const;
  // As ScoreBound has them.
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
  double shortest_row_ = 0;
  double square_error_ = 0;  // of the square of a row's length, for cosine
  std::span<const double> squares_;
};

}  // namespace nearwise::cpu
