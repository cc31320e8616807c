#include "backend/cpu/list_rows.h"

#include <algorithm>
#include <cstring>

namespace nearwise::cpu {
namespace {

// dims: of every part, or 0 if they differ or are unusual.
template <std::size_t dims>
void decode_product(const ListCodec& codec, const float* __restrict centroid, const std::byte* code,
                    float* __restrict out) {
  const float* __restrict book = codec.codebooks.data();
  for (std::size_t part = 0; part < codec.parts(); ++part) {
    const std::size_t begin = codec.part_begins[part];
    const std::size_t length = dims != 0 ? dims : codec.part_begins[part + 1] - begin;
    const float* const word = book + word_of(codec, code, part) * length;
    for (std::size_t i = 0; i < length; ++i) out[begin + i] = centroid[begin + i] + word[i];
    book += length << codec.bits;
  }
}

// The sum in f64 and the order of the codebooks, rounded once.
void decode_additive(const ListCodec& codec, const float* centroid, const std::byte* code, double* sum,
                     float* out) {
  std::copy_n(centroid, codec.dim, sum);
  for (std::size_t book = 0; book < codec.code_bytes; ++book) {
    const float* const word =
        codec.additive_words.data() + (book * 256 + static_cast<std::size_t>(code[book])) * codec.dim;
    for (std::size_t i = 0; i < codec.dim; ++i) sum[i] += static_cast<double>(word[i]);
  }
  std::transform(sum, sum + codec.dim, out, [](double element) { return static_cast<float>(element); });
}

using Decode = void (*)(const ListCodec&, const float*, const std::byte*, float*);

Decode decoder_of(const ListCodec& codec) {
  if (codec.dim % codec.parts() != 0) return decode_product<0>;
  switch (codec.dim / codec.parts()) {
    case 1: return decode_product<1>;
    case 2: return decode_product<2>;
    case 4: return decode_product<4>;
    case 8: return decode_product<8>;
    case 16: return decode_product<16>;
    default: return decode_product<0>;
  }
}

}  // namespace

ListNumbers::ListNumbers(std::span<const ListView> lists, Lookups lookups) : firsts_(lists.size() + 1) {
  for (std::size_t list = 0; list < lists.size(); ++list)
    firsts_[list + 1] = firsts_[list] + lists[list].rows;
  if (lookups == Lookups::few) return;
  const std::size_t rows = firsts_.back();
  stretches_.reserve((rows >> stretch_bits) + 1);
  std::size_t list = 0;
  for (std::size_t row = 0; row < rows; row += std::size_t{1} << stretch_bits) {
    while (firsts_[list + 1] <= row) ++list;
    stretches_.push_back(static_cast<std::uint32_t>(list));
  }
}

std::uint64_t ListNumbers::bytes(std::size_t lists, std::size_t rows) {
  return (lists + 1) * sizeof(std::size_t) + ((rows >> stretch_bits) + 1) * sizeof(std::uint32_t);
}

ListNumbers::Place ListNumbers::find(std::uint32_t number) const {
  if (stretches_.empty()) {
    const auto list = std::ranges::upper_bound(firsts_, std::size_t{number}) - firsts_.begin() - 1;
    return {static_cast<std::size_t>(list), number - firsts_[static_cast<std::size_t>(list)]};
  }
  std::size_t list = stretches_[number >> stretch_bits];
  while (firsts_[list + 1] <= number) ++list;
  return {list, number - firsts_[list]};
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
  const Decode decode = decoder_of(codec);
  for (std::size_t i = 0; i < count; ++i)
    decode(codec, centroid, codes + i * codec.code_bytes, reinterpret_cast<float*>(out) + i * codec.dim);
}

}  // namespace nearwise::cpu
