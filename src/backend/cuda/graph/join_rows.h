// Rows of a graph that is being built, on the device in the order of their places, and their lists.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/device/device_buffer.h"
#include "backend/cuda/kernels/graph/join_tiles.h"
#include "backend/cuda/kernels/rows/pack_rows.h"
#include "backend/ops.h"
#include "core/score_bound.h"

namespace nearwise::gpu {

inline constexpr const char* join_name = "build_knn_graph";  // in messages

// All of it is used on the stream that it was made on.
class JoinRows : public JoinState {
 public:
  JoinRows(const CudaStream& stream, const StartJoinArgs& args);

  static std::uint64_t bytes_per_row(const KnnCostsArgs& args);
  // While it is made, and what its parts are rounded up by.
  static std::uint64_t starting_bytes(const KnnCostsArgs& args);

  // The lists come to the device, and go back to the host, where callers look at them.
  void fetch_lists(const CudaStream& stream);
  void return_lists(const CudaStream& stream);

  std::size_t size() const { return args_.rows.rows(); }
  std::size_t degree() const { return args_.degree; }
  // All but tiles and members.
  JoinTask task();
  ElementType type() const { return args_.rows.type(); }

 private:
  void load_rows(const CudaStream& stream);
  void pack(const CudaStream& stream);

  const StartJoinArgs args_;
  const std::size_t row_bytes_;
  const std::size_t width_;  // of a packed row
  const ScoreBound bound_;
  Lengths longest_;
  DeviceBuffer<std::byte> rows_;  // [rows, dim] as they are
  DeviceBuffer<float> packed_;    // [rows, width]
  DeviceBuffer<Lengths> lengths_;
  DeviceBuffer<NeighborEntry> lists_;  // [rows, degree]
  DeviceBuffer<unsigned> locks_;
};

}  // namespace nearwise::gpu
