// Norms of decoded vectors, computed from their codes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codes/codeword_tables.h"
#include "codes/list_codec.h"
#include "core/memory.h"
#include "nearwise/types.h"

namespace nearwise {

// The number of a row of codes that all its scores share, whatever the query: half the square of its length
// with the centre subtracted (euclidean metrics), or its length (cosine), of the sum of centroid and
// codewords. In f64, rounded once.
class CodeNorms {
 public:
  // Of an index: there are none for inner_product, nor for rows that are kept as they are.
  static bool are_needed(const ListCodec& codec, Metric metric) {
    return !codec.holds_rows() && metric != Metric::inner_product;
  }

  CodeNorms(MemoryBudget& budget, const ListCodec& codec, const CodewordTables& codewords, Metric metric,
            std::span<const float> centre);
  void begin_list(std::size_t list);
  // out: [rows], those of the list that was begun.
  void fill(const std::byte* codes, std::size_t rows, float* out);

 private:
  template <unsigned bits>
  double half_norm_of_product(const std::byte* code) const;
  double half_norm_of_sum(const std::byte* code);

  const ListCodec& codec_;
  const CodewordTables& codewords_;
  const Metric metric_;
  const std::span<const float> centre_;
  Buffer<double> tables_;    // of product codes, [parts, 2^bits]
  double start_ = 0;         // half the square of the centroid
  Buffer<double> centroid_;  // of additive codes, [dim] with the centre subtracted
  Buffer<double> sum_;       // [dim]
};

}  // namespace nearwise
