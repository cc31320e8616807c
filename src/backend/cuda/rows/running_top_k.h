// Running top-k of every query on the device: the best values so far and their rows, best first. Rows arrive
// in tiles in ascending order, so that ties go to the lower row. NaN sorts after all numbers.
#pragma once

#include <cstddef>

#include "backend/cuda/device/device_buffer.h"
#include "nearwise/types.h"

namespace nearwise::gpu {

// Selection merges two lists, whose positions have 32 bits.
inline constexpr std::size_t max_k = std::size_t{1} << 29;

// Values of a tile on the device: column i belongs to row first_row + i.
struct ValueTile {
  const float* values = nullptr;  // [queries, rows], contiguous
  std::size_t queries = 0;
  std::size_t rows = 0;
  std::size_t first_row = 0;
};

class RunningTopK {
 public:
  // Empty entries have value NaN and row no_id.
  RunningTopK(const CudaStream& stream, std::size_t queries, std::size_t length, const char* operation,
              Order order = Order::smallest);
  void clear(const CudaStream& stream);

  static std::size_t bytes(std::size_t queries, std::size_t length);

  // Workspace of add() for tiles of this size or one row less.
  static std::size_t workspace_bytes(std::size_t queries, std::size_t rows, std::size_t length);

  // The tile's queries start at first_query; tile_queries is the count that the workspace was sized for.
  void add(const CudaStream& stream, const ValueTile& tile, std::size_t first_query, std::size_t tile_queries,
           std::byte* workspace);

  std::size_t length() const { return length_; }
  const float* values(std::size_t query) const { return values_.data() + query * length_; }
  const Id* rows(std::size_t query) const { return rows_.data() + query * length_; }

 private:
  const std::size_t length_;
  const char* const operation_;
  const Order order_;
  DeviceBuffer<float> values_;  // [queries, length]
  DeviceBuffer<Id> rows_;
};

}  // namespace nearwise::gpu
