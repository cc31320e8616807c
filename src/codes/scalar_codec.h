// Scalar quantization for the traversal of search graphs: 8-bit codes (SQ8), and 4-bit codes of these.
//
// An offset per dimension and one step for all of them preserve the order of Euclidean distances. Other
// metrics are reduced to them first: vectors are scaled to length 1 (cosine), or extended by a dimension that
// gives all of them the length of the longest (inner_product). Distances between codes are integers: the same
// numbers on every device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace nearwise {

struct ScalarCodec {
  // Queries are rounded to multiples of the step up to one range below the lowest code and above the highest,
  // so that a squared difference is at most 510^2, and sums over this many dimensions are below 2^31.
  static constexpr std::size_t max_dim = 8192;
  static constexpr std::size_t granule = 64;        // bytes; rows of codes are padded with zeros
  static constexpr std::size_t nibble_block = 128;  // dimensions of 64 bytes of 4-bit codes

  Metric metric = Metric::sqeuclidean;
  std::size_t dim = 0;              // of the vectors
  double max_norm = 0;              // squared length of the longest vector; inner_product only
  std::vector<float> offsets = {};  // [code_dim]
  float step = 1;
  // Of 4-bit codes, in units of the 8-bit ones; empty: there are none.
  std::vector<float> nibble_offsets = {};  // [code_dim]
  float nibble_step = 1;

  std::size_t code_dim() const { return dim + (metric == Metric::inner_product ? 1 : 0); }
  std::size_t row_bytes() const { return (code_dim() + granule - 1) / granule * granule; }
  bool has_nibbles() const { return !nibble_offsets.empty(); }
  std::size_t nibble_query_size() const {
    return (code_dim() + nibble_block - 1) / nibble_block * nibble_block;
  }
  std::size_t nibble_row_bytes() const { return has_nibbles() ? nibble_query_size() / 2 : 0; }
  // Distances between codes are those between vectors of integers.
  bool is_exact() const;

  // scratch: [code_dim]. code: [row_bytes] out.
  void encode(const RowsView& rows, std::size_t row, double* scratch, std::uint8_t* code) const;
  // byte_query: [row_bytes] out; nibble_query: [nibble_query_size] out, unless there are no 4-bit codes.
  void encode_query(const RowsView& queries, std::size_t query, double* scratch, std::int16_t* byte_query,
                    std::int16_t* nibble_query) const;
  // 4-bit codes of a row of 8-bit codes; nibbles: [nibble_row_bytes] out.
  void encode_nibbles(const std::uint8_t* code, std::uint8_t* nibbles) const;
  // The vector in the space of the codes, before rounding; out: [code_dim].
  void transform(const RowsView& rows, std::size_t row, double* out) const;

  friend bool operator==(const ScalarCodec&, const ScalarCodec&) = default;
};

}  // namespace nearwise
