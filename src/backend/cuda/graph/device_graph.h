// A search graph on a device: its codes and edges, copied when the graph is first searched there. Vectors
// stay on the host, where the few that are evaluated are gathered.
#pragma once

#include <memory>
#include <mutex>

#include "backend/cuda/device/device_buffer.h"
#include "backend/cuda/kernels/graph/search_graph.h"
#include "backend/ops.h"

namespace nearwise::gpu {

inline constexpr const char* search_graph_name = "GraphIndex.search";  // in error messages

class DeviceGraph : public PreparedGraph {
 public:
  explicit DeviceGraph(const PrepareGraphArgs& args) : graph_(args.graph), budget_(args.budget) {}

  const SearchGraphView& view() const { return graph_; }
  // Any thread may call it, with a stream of the one device. Complete when it returns.
  const GraphArrays& arrays(const CudaStream& stream) const;

 private:
  struct Copy {
    Copy(const CudaStream& stream, MemoryBudget& budget, const SearchGraphView& graph);

    DeviceBuffer<std::byte> codes, nibbles, edges, top_codes, leaf_codes;
    DeviceBuffer<std::uint32_t> ends, leaf_rows;
    GraphArrays arrays;
  };

  const SearchGraphView graph_;
  const std::shared_ptr<MemoryBudget> budget_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<const Copy> copy_;
};

}  // namespace nearwise::gpu
