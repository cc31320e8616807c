#include "codes/codeword_tables.h"

#include <algorithm>
#include <cmath>

namespace nearwise {

double length_bound(double squares) { return std::sqrt(squares) * (1 + 0x1p-40); }

CodewordTables::CodewordTables(MemoryBudget& budget, const ListCodec& codec, std::span<const float> centre)
    : columns_(budget, codec.codewords.size()), half_norms_(budget, codec.parts() << codec.bits) {
  const std::size_t codewords = std::size_t{1} << codec.bits;
  const bool additive = codec.encoding == ListEncoding::lsq;
  for (std::size_t part = 0; part < codec.parts(); ++part) {
    const std::size_t length = codec.part_size(part);
    const std::span<const float> book = codec.codewords_of(part);
    float* const columns = columns_.data() + codec.codewords_begin(part);
    double longest = 0;
    for (std::size_t codeword = 0; codeword < codewords; ++codeword) {
      double squares = 0;
      for (std::size_t i = 0; i < length; ++i) {
        const float value = book[codeword * length + i];
        columns[i * codewords + codeword] = value;
        squares += static_cast<double>(value) * value;
      }
      half_norms_[part * codewords + codeword] = static_cast<float>(squares / 2);
      longest = std::max(longest, squares);
    }
    // Parts of a product code are orthogonal; codewords of an additive code may all point in the same
    // direction.
    longest_codewords_ += additive ? length_bound(longest) : longest;
  }
  if (!additive) longest_codewords_ = length_bound(longest_codewords_);

  double longest = 0;
  double longest_given = 0;
  for (std::size_t list = 0; list < codec.centroids.rows(); ++list) {
    double squares = 0;
    double given = 0;
    for (std::size_t i = 0; i < codec.dim; ++i) {
      const double value = codec.centroids(list, i);
      const double shifted = centre.empty() ? value : value - centre[i];
      given += value * value;
      squares += shifted * shifted;
    }
    longest = std::max(longest, squares);
    longest_given = std::max(longest_given, given);
  }
  longest_centroid_ = length_bound(longest);
  longest_given_centroid_ = length_bound(longest_given);
}

std::uint64_t CodewordTables::bytes(std::size_t dim, std::size_t codebooks) {
  return codebooks == 0 ? 2 * buffer_bytes(256 * dim, sizeof(float))
                        : buffer_bytes(256 * dim * codebooks, sizeof(float)) +
                              buffer_bytes(256 * codebooks, sizeof(float));
}

}  // namespace nearwise
