// The codewords of an inverted file in the form that distance tables are computed from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codes/list_codec.h"
#include "core/memory.h"

namespace nearwise {

// The codebooks of codes in the form that tables are made of. An index has it made once, not every search.
class CodewordTables {
 public:
  // centre: as in ListSearchArgs.
  CodewordTables(MemoryBudget& budget, const ListCodec& codec, std::span<const float> centre);
  // At the most; codebooks: of additive codes, or 0.
  static std::uint64_t bytes(std::size_t dim, std::size_t codebooks);

  // Every part transposed, [its elements, 2^bits]; they begin where the codec's codewords_begin() says.
  std::span<const float> columns() const { return columns_.span(); }
  std::span<const float> half_norms() const { return half_norms_.span(); }  // |r|^2 / 2, [parts, 2^bits]
  // No shorter than any: codewords of all parts together, centroids with the centre subtracted and as they
  // are.
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

// The length whose square is about `squares`, rounded up past what the sum and the root may have rounded off.
double length_bound(double squares);

}  // namespace nearwise
