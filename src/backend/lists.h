// An inverted file as backends see it: rows in lists, and the code that stands for each of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/memory.h"
#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace nearwise {

class ProductWords;

struct ListView {
  const std::byte* codes = nullptr;  // [rows, code_bytes]
  const Id* ids = nullptr;           // [rows]
  std::size_t rows = 0;
};

// What a code stands for: the row itself, or the sum of its list's centroid and one codeword for each part of the row (a
// product code), or of the centroid and one codeword as long as the row of every codebook (an additive code).
struct ListCodec {
  std::size_t dim = 0;
  ElementType type = ElementType::f32;  // of the rows that codes stand for
  std::size_t code_bytes = 0;
  // Of product codes; else empty.
  std::span<const std::size_t> part_begins;  // [parts + 1] dimensions
  std::span<const float> codebooks;          // of all parts in turn, [2^bits, dimensions of the part]
  unsigned bits = 8;                         // or 4: part 2i in the low half of byte i
  MatrixView<const float> centroids;         // [lists, dim]
  const ProductWords* words = nullptr;       // made of the above before; null: a search makes its own
  // Of additive codes, a byte for each codebook; else empty.
  std::span<const float> additive_words = {};  // [code_bytes, 256, dim]

  bool is_product() const { return !part_begins.empty(); }
  bool is_additive() const { return !additive_words.empty(); }
  bool holds_rows() const { return !is_product() && !is_additive(); }

  // Of codes. A part of an additive code is one codebook, whose codewords have all elements of a row.
  std::size_t parts() const { return is_additive() ? code_bytes : part_begins.size() - 1; }
  std::size_t part_begin(std::size_t part) const { return is_additive() ? 0 : part_begins[part]; }
  std::size_t part_size(std::size_t part) const {
    return is_additive() ? dim : part_begins[part + 1] - part_begins[part];
  }
  // Where its codewords, [2^bits, part_size], begin among all.
  std::size_t words_begin(std::size_t part) const {
    return (is_additive() ? part * dim : part_begins[part]) << bits;
  }
  std::span<const float> all_words() const { return is_additive() ? additive_words : codebooks; }
  std::span<const float> words_of(std::size_t part) const {
    return all_words().subspan(words_begin(part), part_size(part) << bits);
  }
};

// The codeword of a part that a code names.
template <unsigned bits>
std::size_t word_of(const std::byte* code, std::size_t part) {
  if constexpr (bits == 8) return static_cast<std::size_t>(code[part]);
  const auto both = static_cast<std::size_t>(code[part / 2]);
  return part % 2 == 0 ? both & 15U : both >> 4U;
}
inline std::size_t word_of(const ListCodec& codec, const std::byte* code, std::size_t part) {
  return codec.bits == 8 ? word_of<8>(code, part) : word_of<4>(code, part);
}

// Writes what the codes of rows [first, first + count) of a list stand for, as codec.type, one after the other.
void decode_rows(const ListCodec& codec, const ListView& view, std::size_t list, std::size_t first,
                 std::size_t count, std::byte* out);

// The codebooks of codes in the form that tables are made of. An index has it made once, not every search.
class ProductWords {
 public:
  // centre: as in ListSearchArgs.
  ProductWords(MemoryBudget& budget, const ListCodec& codec, std::span<const float> centre);
  // At the most; codebooks: of additive codes, or 0.
  static std::uint64_t bytes(std::size_t dim, std::size_t codebooks);

  // Every part transposed, [its elements, 2^bits]; they begin where the codec's words_begin() says.
  std::span<const float> columns() const { return columns_.span(); }
  std::span<const float> half_squares() const { return half_squares_.span(); }  // |r|^2 / 2, [parts, 2^bits]
  // No shorter than any: codewords of all parts together, centroids with the centre subtracted and as they are.
  double longest_codewords() const { return longest_codewords_; }
  double longest_centroid() const { return longest_centroid_; }
  double longest_given_centroid() const { return longest_given_centroid_; }

 private:
  Buffer<float> columns_;
  Buffer<float> half_squares_;
  double longest_codewords_ = 0;
  double longest_centroid_ = 0;
  double longest_given_centroid_ = 0;
};

// The number of a row of codes that all its scores share, whatever the query: half the square of its length with the
// centre subtracted (euclidean metrics), or its length (cosine), of the sum of centroid and codewords. In f64, rounded once.
class RowTerms {
 public:
  // Of an index: there are none for inner_product, nor for rows that are kept as they are.
  static bool are_needed(const ListCodec& codec, Metric metric) {
    return !codec.holds_rows() && metric != Metric::inner_product;
  }

  RowTerms(MemoryBudget& budget, const ListCodec& codec, const ProductWords& words, Metric metric,
           std::span<const float> centre);
  void begin_list(std::size_t list);
  // out: [rows], those of the list that was begun.
  void fill(const std::byte* codes, std::size_t rows, float* out);

 private:
  template <unsigned bits>
  double half_square_of_product(const std::byte* code) const;
  double half_square_of_sum(const std::byte* code);

  const ListCodec& codec_;
  const ProductWords& words_;
  const Metric metric_;
  const std::span<const float> centre_;
  Buffer<double> tables_;    // of product codes, [parts, 2^bits]
  double start_ = 0;         // half the square of the centroid
  Buffer<double> centroid_;  // of additive codes, [dim] with the centre subtracted
  Buffer<double> sum_;       // [dim]
};

// The length whose square is about `squares`, rounded up past what the sum and the root may have rounded off.
double length_bound(double squares);

// The best k rows of the lists that each query probes, by their reported distance from what their codes stand for and then by
// id. With `rows`, the best `candidates` so found are looked at again: of these the best k by the distance from the row
// itself.
struct ListSearchArgs {
  RowsView queries;
  std::span<const Id> probes;  // [queries, probe count] lists; no_id: none
  std::span<const ListView> lists;
  const ListCodec& codec;
  Metric metric = Metric::sqeuclidean;
  std::span<const float> centre;  // as in PrepareArgs
  // [lists] the RowTerms of every row and then their least; null where they are not kept. Empty: none are.
  std::span<const std::atomic<const float*>> terms = {};
  std::size_t k = 0;
  std::size_t candidates = 0;  // at least k
  RowsView rows;               // by id; empty: none
  MatrixView<Id> ids;          // [queries, k] out, short rows padded
  MatrixView<float> distances;

  std::size_t probe_count() const { return queries.rows() == 0 ? 0 : probes.size() / queries.rows(); }
};

// Bytes on the context's budget.
struct ListSearchCosts {
  std::uint64_t bytes_per_query = 0;
  std::uint64_t fixed_bytes = 0;
};

struct ListSearchShape {
  std::size_t dim = 0;
  Metric metric = Metric::sqeuclidean;
  ElementType query_type = ElementType::f32;
  ElementType row_type = ElementType::f32;
  std::size_t candidates = 0;
  std::size_t probes = 0;
  std::size_t lists = 0;
  std::size_t rows = 0;       // in all lists
  std::size_t codebooks = 0;  // of additive codes
};

}  // namespace nearwise
