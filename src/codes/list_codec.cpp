#include "codes/list_codec.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace nearwise {
namespace {

// dims: of every part; 0: they differ, or have no instance of their own.
template <std::size_t dims, unsigned bits>
void decode_product(const ListCodec& codec, const float* __restrict centroid, const std::byte* code,
                    float* __restrict out) {
  const float* __restrict book = codec.codewords.data();
  const std::size_t* const begins = codec.part_begins.data();
  const std::size_t parts = codec.parts();
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t length = dims != 0 ? dims : begins[part + 1] - begins[part];
    const float* const codeword = book + codeword_of<bits>(code, part) * length;
    for (std::size_t i = 0; i < length; ++i) out[i] = centroid[i] + codeword[i];
    book += length << bits;
    centroid += length;
    out += length;
  }
}

// Adds in f64, in the order of the codebooks, and rounds once.
void decode_additive(const ListCodec& codec, const float* centroid, const std::byte* code, double* sum,
                     float* out) {
  std::copy_n(centroid, codec.dim, sum);
  for (std::size_t book = 0; book < codec.parts(); ++book) {
    const float* const codeword = codec.codewords_of(book).data() + codeword_of<8>(code, book) * codec.dim;
    for (std::size_t i = 0; i < codec.dim; ++i) sum[i] += static_cast<double>(codeword[i]);
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

void decode_rows(const ListCodec& codec, const ListView& view, std::size_t list, std::size_t first,
                 std::size_t count, std::byte* out) {
  const std::byte* const codes = view.codes + first * codec.code_bytes;
  float* const decoded = reinterpret_cast<float*>(out);
  switch (codec.encoding) {
    case ListEncoding::flat: std::memcpy(out, codes, count * codec.code_bytes); return;
    case ListEncoding::pq: {
      const float* const centroid = codec.centroids.row(list).data();
      const Decode decode = codec.bits == 8 ? decoder_of<8>(codec) : decoder_of<4>(codec);
      for (std::size_t i = 0; i < count; ++i)
        decode(codec, centroid, codes + i * codec.code_bytes, decoded + i * codec.dim);
      return;
    }
    case ListEncoding::lsq: {
      const float* const centroid = codec.centroids.row(list).data();
      std::vector<double> sum(codec.dim);
      for (std::size_t i = 0; i < count; ++i)
        decode_additive(codec, centroid, codes + i * codec.code_bytes, sum.data(), decoded + i * codec.dim);
    }
  }
}

}  // namespace nearwise
