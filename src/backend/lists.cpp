#include "backend/lists.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/distance.h"

namespace nearwise {
namespace {

// dims: of every part, or 0 if they differ or are unusual.
template <std::size_t dims, unsigned bits>
void decode_product(const ListCodec& codec, const float* __restrict centroid, const std::byte* code,
                    float* __restrict out) {
  const float* __restrict book = codec.codebooks.data();
  const std::size_t* const begins = codec.part_begins.data();
  const std::size_t parts = codec.parts();
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t length = dims != 0 ? dims : begins[part + 1] - begins[part];
    const float* const word = book + word_of<bits>(code, part) * length;
    for (std::size_t i = 0; i < length; ++i) out[i] = centroid[i] + word[i];
    book += length << bits;
    centroid += length;
    out += length;
  }
}

// The sum in f64 and the order of the codebooks, rounded once.
void decode_additive(const ListCodec& codec, const float* centroid, const std::byte* code, double* sum,
                     float* out) {
  std::copy_n(centroid, codec.dim, sum);
  for (std::size_t book = 0; book < codec.parts(); ++book) {
    const float* const word = codec.words_of(book).data() + word_of<8>(code, book) * codec.dim;
    for (std::size_t i = 0; i < codec.dim; ++i) sum[i] += static_cast<double>(word[i]);
  }
  std::transform(sum, sum + codec.dim, out, [](double element) { return static_cast<float>(element); });
}

using Decode = void (*)(const ListCodec&, const float*, const std::byte*, float*);

template <unsigned bits>
Decode decoder_of(const ListCodec& codec) {
  if (codec.dim % codec.parts() != 0) return decode_product<0, bits>;
  switch (codec.dim / codec.parts()) {
    case 1: return decode_product<1, bits>;
    case 2: return decode_product<2, bits>;
    case 4: return decode_product<4, bits>;
    case 8: return decode_product<8, bits>;
    case 16: return decode_product<16, bits>;
    default: return decode_product<0, bits>;
  }
}

}  // namespace

double length_bound(double squares) { return std::sqrt(squares) * (1 + 0x1p-40); }

ProductWords::ProductWords(MemoryBudget& budget, const ListCodec& codec, std::span<const float> centre)
    : columns_(budget, codec.all_words().size()), half_squares_(budget, codec.parts() << codec.bits) {
  const std::size_t words = std::size_t{1} << codec.bits;
  for (std::size_t part = 0; part < codec.parts(); ++part) {
    const std::size_t length = codec.part_size(part);
    const std::span<const float> book = codec.words_of(part);
    float* const columns = columns_.data() + codec.words_begin(part);
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
    // Parts of a product code are at right angles; codewords of an additive one may all point in the same direction.
    longest_codewords_ += codec.is_additive() ? length_bound(longest) : longest;
  }
  if (!codec.is_additive()) longest_codewords_ = length_bound(longest_codewords_);

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
      tables_(budget, codec.is_additive() ? 0 : codec.parts() << codec.bits),
      centroid_(budget, codec.is_additive() ? codec.dim : 0),
      sum_(budget, codec.is_additive() ? codec.dim : 0) {}

// |c' + r|^2 / 2 is |c'|^2 / 2 and, of every part of a product code, r (c' + r / 2). Codewords of additive codes have products
// with each other, too: there the sum is made.
void RowTerms::begin_list(std::size_t list) {
  if (codec_.is_additive()) {
    for (std::size_t i = 0; i < codec_.dim; ++i)
      centroid_[i] = static_cast<double>(codec_.centroids(list, i)) -
                     (centre_.empty() ? 0.0 : static_cast<double>(centre_[i]));
    return;
  }
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

template <unsigned bits>
double RowTerms::half_square_of_product(const std::byte* code) const {
  double sums[2] = {start_, 0};
  for (std::size_t part = 0; part < codec_.parts(); ++part)
    sums[part % 2] += tables_[(part << bits) + word_of<bits>(code, part)];
  return std::max(0.0, sums[0] + sums[1]);
}

double RowTerms::half_square_of_sum(const std::byte* code) {
  std::ranges::copy(centroid_.span(), sum_.data());
  for (std::size_t part = 0; part < codec_.parts(); ++part) {
    const float* const word = codec_.words_of(part).data() + word_of<8>(code, part) * codec_.dim;
    for (std::size_t i = 0; i < codec_.dim; ++i) sum_[i] += static_cast<double>(word[i]);
  }
  double squares = 0;
  for (const double element : sum_.span()) squares += element * element;
  return squares / 2;
}

void RowTerms::fill(const std::byte* codes, std::size_t rows, float* out) {
  const auto fill_all = [&](const auto& half_square) {
    for (std::size_t row = 0; row < rows; ++row) {
      const double half = half_square(codes + row * codec_.code_bytes);
      out[row] = static_cast<float>(is_euclidean(metric_) ? half : std::sqrt(2 * half));
    }
  };
  if (codec_.is_additive())
    fill_all([&](const std::byte* code) { return half_square_of_sum(code); });
  else if (codec_.bits == 8)
    fill_all([&](const std::byte* code) { return half_square_of_product<8>(code); });
  else
    fill_all([&](const std::byte* code) { return half_square_of_product<4>(code); });
}

std::uint64_t ProductWords::bytes(std::size_t dim, std::size_t codebooks) {
  return codebooks == 0 ? 2 * buffer_bytes(256 * dim, sizeof(float))
                        : buffer_bytes(256 * dim * codebooks, sizeof(float)) +
                              buffer_bytes(256 * codebooks, sizeof(float));
}

void decode_rows(const ListCodec& codec, const ListView& view, std::size_t list, std::size_t first,
                 std::size_t count, std::byte* out) {
  const std::byte* const codes = view.codes + first * codec.code_bytes;
  if (codec.holds_rows()) {
    std::memcpy(out, codes, count * codec.code_bytes);
    return;
  }
  const float* const centroid = codec.centroids.row(list).data();
  if (codec.is_additive()) {
    std::vector<double> sum(codec.dim);
    for (std::size_t i = 0; i < count; ++i)
      decode_additive(codec, centroid, codes + i * codec.code_bytes, sum.data(),
                      reinterpret_cast<float*>(out) + i * codec.dim);
    return;
  }
  const Decode decode = codec.bits == 8 ? decoder_of<8>(codec) : decoder_of<4>(codec);
  for (std::size_t i = 0; i < count; ++i)
    decode(codec, centroid, codes + i * codec.code_bytes, reinterpret_cast<float*>(out) + i * codec.dim);
}

}  // namespace nearwise
