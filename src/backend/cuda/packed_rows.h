// Rows packed for products, on the device.
#pragma once

#include <cstddef>

#include "backend/cuda/device_buffer.h"
#include "backend/cuda/stream.h"
#include "backend/ops.h"
#include "core/distance.h"
#include "core/memory.h"
#include "core/score_bound.h"

namespace nearwise::gpu {

inline constexpr const char* exact_search = "exact search";  // in messages

// Floats of a packed row: its elements, the bias of euclidean scores, and what makes rows begin at 16 bytes.
constexpr std::size_t packed_width(Metric metric, std::size_t dim) {
  return (dim + (is_euclidean(metric) ? 1 : 0) + 3) / 4 * 4;
}

class PackedRows : public PreparedRows {
 public:
  PackedRows(const CudaStream& stream, RowsRole role, std::size_t row_count, std::size_t row_width)
      : rows(row_count),
        width(row_width),
        elements(stream, rows * width, exact_search),
        lengths(stream.budget(), role == RowsRole::queries ? rows : 0) {}

  static std::uint64_t bytes_per_row(RowsRole role, std::size_t width) {
    return width * sizeof(float) + (role == RowsRole::queries ? sizeof(Lengths) : 0);
  }

  const std::size_t rows;
  const std::size_t width;
  DeviceBuffer<float> elements;  // [rows, width]
  Buffer<Lengths> lengths;       // [rows] queries only, on the host
  Lengths longest;               // no row is longer
};

// What packing takes while it runs, at the least.
std::uint64_t packing_bytes(std::size_t dim, std::size_t row_bytes);

// Copies rows to the device, or within it: one after another.
void copy_rows_to_device(const CudaStream& stream, const RowsView& rows, std::byte* out);

}  // namespace nearwise::gpu
