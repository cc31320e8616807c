// Rows on the device, packed for matrix products.
#pragma once

#include <bit>
#include <cstddef>

#include "backend/cuda/device/device_buffer.h"
#include "backend/cuda/device/encoding.h"
#include "backend/cuda/device/stream.h"
#include "backend/cuda/kernels/rows/pack_rows.h"
#include "backend/ops.h"
#include "core/distance.h"
#include "core/math/score_bound.h"
#include "core/memory.h"

namespace nearwise::gpu {

inline constexpr const char* exact_search = "exact search";  // in error messages

inline Encoding encoding_of(const CudaStream& stream) { return parse_encoding(stream.context.options.isa); }

// Numbers of a packed row: elements, bias of Euclidean scores, and padding to 16 bytes.
constexpr std::size_t packed_width(Metric metric, std::size_t dim, Encoding encoding) {
  const std::size_t needed = dim + (is_euclidean(metric) ? bias_columns(encoding) : 0);
  const std::size_t granule = 16 / encoded_bytes(encoding);
  return (needed + granule - 1) / granule * granule;
}

class PackedRows : public PreparedRows {
 public:
  PackedRows(const CudaStream& stream, RowsRole role, std::size_t row_count, std::size_t row_width,
             Encoding row_encoding)
      : rows(row_count),
        width(row_width),
        encoding(row_encoding),
        elements(stream, rows * row_bytes(), exact_search),
        lengths(stream.budget(), role == RowsRole::queries ? rows : 0) {}

  static std::uint64_t bytes_per_row(RowsRole role, std::size_t width, Encoding encoding) {
    return width * encoded_bytes(encoding) + (role == RowsRole::queries ? sizeof(Lengths) : 0);
  }

  std::size_t row_bytes() const { return width * encoded_bytes(encoding); }
  std::byte* row(std::size_t index) { return elements.data() + index * row_bytes(); }
  const std::byte* row(std::size_t index) const { return elements.data() + index * row_bytes(); }

  const std::size_t rows;
  const std::size_t width;
  const Encoding encoding;
  DeviceBuffer<std::byte> elements;  // [rows, width]
  Buffer<Lengths> lengths;           // [rows] of queries only, on the host
  Lengths longest;                   // upper bound over all rows
};

// Exceeds the relative rounding error of f64 sums of up to 2^20 squares.
inline constexpr double norm_margin = 1 + 0x1p-30;

// Upper bound of the lengths of all packed rows.
inline Lengths longest_of(const PackedSummary& summary) {
  return {std::bit_cast<double>(summary.longest_norm) * norm_margin,
          std::bit_cast<double>(summary.longest_residual) * norm_margin};
}

// Minimum working memory of packing.
std::uint64_t packing_bytes(std::size_t dim, std::size_t element_bytes);

// Copies rows to contiguous memory on the device, from the host or the device.
void copy_rows_to_device(const CudaStream& stream, const RowsView& rows, std::byte* out);

}  // namespace nearwise::gpu
