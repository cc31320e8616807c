#include "backend/lists.h"

#include <algorithm>
#include <cmath>

#include "core/distance.h"

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

RowTerms::RowTerms(MemoryBudget& budget, const ListCodec& codec, const ProductWords& words, Metric metric,
                   std::span<const float> centre)
    : codec_(codec),
      words_(words),
      metric_(metric),
      centre_(centre),
      tables_(budget, codec.parts() << codec.bits) {}

// |c' + r|^2 / 2 is |c'|^2 / 2 and, of every part, r (c' + r / 2).
void RowTerms::begin_list(std::size_t list) {
  const std::size_t words = std::size_t{1} << codec_.bits;
  std::ranges::fill(tables_.span(), 0.0);
  start_ = 0;
  for (std::size_t part = 0; part < codec_.parts(); ++part) {
    double* const table = tables_.data() + part * words;
    for (std::size_t i = codec_.part_begins[part]; i < codec_.part_begins[part + 1]; ++i) {
      const double given = codec_.centroids(list, i);
      const double centroid = centre_.empty() ? given : given - centre_[i];
      start_ += centroid * centroid / 2;
      const float* const column = words_.columns().data() + i * words;
      for (std::size_t word = 0; word < words; ++word) {
        const double value = column[word];
        table[word] += value * (centroid + value / 2);
      }
    }
  }
}

void RowTerms::fill(const std::byte* codes, std::size_t rows, float* out) const {
  const std::size_t parts = codec_.parts();
  const std::size_t code_bytes = codec_.code_bytes;
  const double* const tables = tables_.data();
  const auto fill_all = [&]<unsigned bits>() {
    for (std::size_t row = 0; row < rows; ++row) {
      const std::byte* const code = codes + row * code_bytes;
      double sums[2] = {start_, 0};
      for (std::size_t part = 0; part < parts; ++part)
        sums[part % 2] += tables[(part << bits) + word_of<bits>(code, part)];
      const double half = std::max(0.0, sums[0] + sums[1]);
      out[row] = static_cast<float>(is_euclidean(metric_) ? half : std::sqrt(2 * half));
    }
  };
  codec_.bits == 8 ? fill_all.operator()<8>() : fill_all.operator()<4>();
}

std::uint64_t ProductWords::bytes(std::size_t dim) { return 2 * buffer_bytes(256 * dim, sizeof(float)); }

}  // namespace nearwise
