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

// The norm of each decoded vector of a list, the part of its score that does not depend on the query: |x -
// centre|^2 / 2 (euclidean metrics) or |x| (cosine). Computed in f64, rounded once.
class CodeNorms {
 public:
  // inner_product has no norms, and vectors stored as they are need no cached ones.
  static bool are_needed(const ListCodec& codec, Metric metric) {
    return !codec.is_flat() && metric != Metric::inner_product;
  }

  CodeNorms(MemoryBudget& budget, const ListCodec& codec, const CodewordTables& codewords, Metric metric,
            std::span<const float> centre);
  void begin_list(std::size_t list);
  // out: [rows], of the list that begin_list() named.
  void fill(const std::byte* codes, std::size_t rows, float* out);

 private:
  template <unsigned bits>
  double half_norm_of_product(const std::byte* code) const;
  double half_norm_of_sum(const std::byte* code);

  const ListCodec& codec_;
  const CodewordTables& codewords_;
  const Metric metric_;
  const std::span<const float> centre_;
  const bool additive_;
  Buffer<double> tables_;    // product codes: [parts, 2^bits]
  double start_ = 0;         // |centroid - centre|^2 / 2
  Buffer<double> centroid_;  // additive codes: [dim] with the centre subtracted
  Buffer<double> sum_;       // [dim]
};

}  // namespace nearwise
