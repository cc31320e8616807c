// Tiles of rows on the device as f32, from host or device rows of any element type.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backend/cuda/device/device_buffer.h"
#include "backend/cuda/kernels/rows/widen_rows.h"
#include "backend/cuda/rows/packed_rows.h"
#include "backend/cuda/tuning/quantizer.h"
#include "core/checked.h"
#include "nearwise/matrix.h"

namespace nearwise::gpu {

class RowTiles {
 public:
  RowTiles(const CudaStream& stream, const RowsView& rows, std::size_t tile_rows, const char* operation)
      : stream_(stream),
        all_(rows),
        tile_rows_(tile_rows),
        raw_(stream, tile_rows * rows.dim() * element_size(rows.type()), operation),
        rows_(stream, tile_rows * rows.dim(), operation) {}
  static std::uint64_t bytes(std::size_t dim, std::size_t element_bytes, std::size_t tile_rows) {
    return device_bytes(tile_rows * dim, element_bytes) + device_bytes(tile_rows * dim, sizeof(float));
  }

  std::size_t tile_rows() const { return tile_rows_; }

  const float* load(std::size_t first, std::size_t count) {
    copy_rows_to_device(stream_, all_.slice(first, count), raw_.data());
    launch_widen_rows(stream_.handle(), all_.type(), raw_.data(), count, all_.dim(), rows_.data());
    return rows_.data();
  }

 private:
  const CudaStream& stream_;
  const RowsView& all_;
  const std::size_t tile_rows_;
  DeviceBuffer<std::byte> raw_;
  DeviceBuffer<float> rows_;
};

// The most tile rows with bytes_of(rows) <= `bytes`, at least 1.
template <typename BytesOf>
std::size_t choose_tile_rows(std::size_t rows, std::uint64_t bytes, const BytesOf& bytes_of) {
  std::size_t chosen = std::clamp<std::size_t>(rows, 1, tuning::max_coded_rows);
  while (chosen > 1 && bytes_of(chosen) > bytes) chosen = divide_up<std::size_t>(chosen, 2);
  return chosen;
}

}  // namespace nearwise::gpu
