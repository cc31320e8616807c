// Rows of a graph under construction, on the device in the order of the construction, and their neighbour
// lists.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/device/device_buffer.h"
#include "backend/cuda/kernels/graph/join_tiles.h"
#include "backend/cuda/kernels/rows/pack_rows.h"
#include "backend/ops.h"
#include "core/math/score_bound.h"

namespace nearwise::gpu {

inline constexpr const char* join_name = "build_knn_graph";  // in error messages

// Used only on the stream that it was created on.
class JoinRows : public JoinState {
 public:
  JoinRows(const CudaStream& stream, const StartJoinArgs& args);

  static std::uint64_t bytes_per_row(const KnnCostsArgs& args);
  // Minimum working memory of the constructor, and alignment of the buffers.
  static std::uint64_t starting_bytes(const KnnCostsArgs& args);

  // Copy the neighbour lists to the device and back to the host.
  void fetch_lists(const CudaStream& stream);
  void return_lists(const CudaStream& stream);

  std::size_t size() const { return args_.rows.rows(); }
  std::size_t degree() const { return args_.degree; }
  // Without tiles and members.
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
  DeviceBuffer<std::byte> rows_;  // [rows, dim] in their own type
  DeviceBuffer<float> packed_;    // [rows, width]
  DeviceBuffer<Lengths> lengths_;
  DeviceBuffer<NeighborEntry> lists_;  // [rows, degree]
  DeviceBuffer<unsigned> locks_;
};

}  // namespace nearwise::gpu
