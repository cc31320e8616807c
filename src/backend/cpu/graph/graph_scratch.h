// Memory of one search at a time in a graph, kept between searches: the bits of seen rows are as many as the
// rows, and clearing those that were set is faster than clearing all.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "backend/cpu/graph/beam.h"
#include "backend/cpu/kernels/codes/code_distances.h"
#include "backend/cpu/rows/answers.h"
#include "backend/ops.h"
#include "core/memory.h"

namespace nearwise::cpu {

// Rows that one expansion step compares at most: the lists of two rows.
inline constexpr std::size_t expanded_at_once = 2;

struct GraphScratch {
  GraphScratch(const SearchGraphView& graph, std::shared_ptr<MemoryBudget> shared_budget);

  std::shared_ptr<MemoryBudget> budget;

  // The bits of these rows have been set.
  void mark(const std::uint32_t* marked_rows, std::size_t count) noexcept;
  // Sets all bits to 0.
  void forget_seen() noexcept;

  Buffer<std::uint32_t> seen;    // a bit per row; all 0 between searches
  Buffer<std::uint32_t> marked;  // rows whose bits are set, as far as there is room
  std::size_t marked_count = 0;  // more than there is room for: all bits are to be cleared
  Buffer<std::uint32_t> rows;
  Buffer<std::int32_t> distances;
  Buffer<double> vector;
  Buffer<std::int16_t> byte_query;
  Buffer<std::int16_t> nibble_query;
  Beam beam;
  Beam found;  // allowed rows, under a filter
  Buffer<Answer> answers;
};

// Hands out scratch memory, and keeps what is given back. Without locks, which a forked child could inherit.
class GraphScratchPool {
 public:
  explicit GraphScratchPool(const PrepareGraphArgs& args) : graph_(args.graph), budget_(args.budget) {}
  GraphScratchPool(const GraphScratchPool&) = delete;
  GraphScratchPool& operator=(const GraphScratchPool&) = delete;
  ~GraphScratchPool();

  std::unique_ptr<GraphScratch> take();
  void give_back(std::unique_ptr<GraphScratch> scratch) noexcept;

 private:
  const SearchGraphView graph_;
  const std::shared_ptr<MemoryBudget> budget_;
  std::array<std::atomic<GraphScratch*>, 64 * graph_searches_per_thread> kept_ = {};
};

}  // namespace nearwise::cpu
