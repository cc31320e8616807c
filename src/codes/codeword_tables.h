// The codewords of an inverted file in the form that distance tables are computed from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codes/list_codec.h"
#include "core/memory.h"

namespace nearwise {

// Computed once per index rather than once per search.
class CodewordTables {
 public:
  // centre: as in ListSearchArgs.
  CodewordTables(MemoryBudget& budget, const ListCodec& codec, std::span<const float> centre);
  // Upper bound of the memory. codebooks: of additive codes; 0 for product codes.
  static std::uint64_t bytes(std::size_t dim, std::size_t codebooks);

  // The codewords of each part transposed, [part_size, 2^bits], at ListCodec::codewords_begin(part).
  std::span<const float> columns() const { return columns_.span(); }
  std::span<const float> half_norms() const { return half_norms_.span(); }  // |r|^2 / 2, [parts, 2^bits]
  // Upper bounds of norms: of a sum of codewords, of a centroid minus the centre, and of a centroid.
  double longest_codewords() const { return longest_codewords_; }
  double longest_centroid() const { return longest_centroid_; }
  double longest_given_centroid() const { return longest_given_centroid_; }

 private:
  Buffer<float> columns_;
  Buffer<float> half_norms_;
  double longest_codewords_ = 0;
  double longest_centroid_ = 0;
  double longest_given_centroid_ = 0;
};

// An upper bound of sqrt(squares) that covers the rounding of the sum and of the root.
double length_bound(double squares);

}  // namespace nearwise
