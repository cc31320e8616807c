#include "backend/lists.h"

#include <algorithm>
#include <cmath>

namespace nearwise {

double length_bound(double squares) { return std::sqrt(squares) * (1 + 0x1p-40); }

ProductWords::ProductWords(MemoryBudget& budget, const ListCodec& codec, std::span<const float> centre)
    : columns_(budget, codec.codebooks.size()), half_squares_(budget, codec.parts() << codec.bits) {
  const std::size_t words = std::size_t{1} << codec.bits;
  const float* book = codec.codebooks.data();
  float* columns = columns_.data();
  double longest_of_all = 0;
  for (std::size_t part = 0; part < codec.parts(); ++part) {
    const std::size_t length = codec.part_begins[part + 1] - codec.part_begins[part];
    double longest = 0;
    for (std::size_t word = 0; word < words; ++word) {
      double squares = 0;
      for (std::size_t i = 0; i < length; ++i) {
        const float value = book[word * length + i];
        columns[i * words + word] = value;
        squares += static_cast<double>(value) * value;
      }
      half_squares_[part * words + word] = static_cast<float>(squares / 2);
      longest = std::max(longest, squares);
    }
    longest_of_all += longest;
    book += length * words;
    columns += length * words;
  }
  longest_codewords_ = length_bound(longest_of_all);

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

std::uint64_t ProductWords::bytes(std::size_t dim) { return 2 * buffer_bytes(256 * dim, sizeof(float)); }

}  // namespace nearwise
