// The best values of every query so far and the rows they belong to, best first, on the device. Rows come in tiles, in
// their order: equal values keep it.
#pragma once

#include <cstddef>

#include "backend/cuda/device/device_buffer.h"
#include "nearwise/types.h"

namespace nearwise::gpu {

// Values of a tile, on the device: column i is of row first_row + i.
struct ValueTile {
  const float* values = nullptr;  // [queries, rows], one query after another
  std::size_t queries = 0;
  std::size_t rows = 0;
  std::size_t first_row = 0;
};

class BestLists {
 public:
  // Empty lists: every entry has a NaN for its value and no_id for its row, and stands behind all others.
  BestLists(const CudaStream& stream, std::size_t queries, std::size_t length, const char* operation);
  void clear(const CudaStream& stream);

  static std::size_t bytes(std::size_t queries, std::size_t length);

  // What add() needs for tiles of these queries and rows, or one row less.
  static std::size_t workspace_bytes(std::size_t queries, std::size_t rows, std::size_t length);

  // Queries of the tile begin with first_query; tile_queries is the number that the workspace was made for.
  void add(const CudaStream& stream, const ValueTile& tile, std::size_t first_query, std::size_t tile_queries,
           std::byte* workspace);

  std::size_t length() const { return length_; }
  const float* values(std::size_t query) const { return values_.data() + query * length_; }
  const Id* rows(std::size_t query) const { return rows_.data() + query * length_; }

 private:
  const std::size_t length_;
  const char* const operation_;
  DeviceBuffer<float> values_;  // [queries, length]
  DeviceBuffer<Id> rows_;
};

}  // namespace nearwise::gpu
