#include "backend/cpu/graph/graph_scratch.h"

#include <algorithm>
#include <utility>

#include "core/checked.h"

namespace nearwise::cpu {
namespace {

// Rows compared by one call: of the lists of an expansion, or of entries of the tree.
std::size_t compared_at_once(const SearchGraphView& graph) {
  const std::size_t entries = std::max(graph.entries.top_codes.rows(), graph.entries.rows.size());
  return std::max(expanded_at_once * graph.edges.cols(), entries) + code_overrun;
}

// Rows to clear one by one. A search that has seen more is long enough to clear all bits.
constexpr std::size_t max_marked = 1 << 16;

std::size_t marked_room(const SearchGraphView& graph) { return std::min(graph.codes.rows(), max_marked); }
std::size_t seen_words(const SearchGraphView& graph) {
  return divide_up<std::size_t>(graph.codes.rows(), 32);
}

}  // namespace

GraphScratch::GraphScratch(const SearchGraphView& graph, std::shared_ptr<MemoryBudget> shared_budget)
    : budget(std::move(shared_budget)),
      seen(*budget, seen_words(graph)),
      marked(*budget, marked_room(graph)),
      rows(*budget, compared_at_once(graph)),
      distances(*budget, compared_at_once(graph)),
      vector(*budget, graph.codec->code_dim()),
      byte_query(*budget, graph.codec->row_bytes()),
      nibble_query(*budget, graph.codec->has_nibbles() ? graph.codec->nibble_query_size() : 0) {
  std::fill_n(seen.data(), seen.size(), 0U);
}

void GraphScratch::mark(const std::uint32_t* marked_rows, std::size_t count) noexcept {
  if (marked_count + count <= marked.size()) std::copy_n(marked_rows, count, marked.data() + marked_count);
  marked_count += count;
}

void GraphScratch::forget_seen() noexcept {
  if (marked_count <= marked.size()) {
    for (std::size_t i = 0; i < marked_count; ++i) seen[marked[i] >> 5] = 0;
  } else {
    std::fill_n(seen.data(), seen.size(), 0U);
  }
  marked_count = 0;
}

std::unique_ptr<GraphScratch> GraphScratchPool::take() {
  for (std::atomic<GraphScratch*>& slot : kept_)
    if (GraphScratch* const kept = slot.exchange(nullptr, std::memory_order_acquire))
      return std::unique_ptr<GraphScratch>(kept);
  return std::make_unique<GraphScratch>(graph_, budget_);
}

void GraphScratchPool::give_back(std::unique_ptr<GraphScratch> scratch) noexcept {
  for (std::atomic<GraphScratch*>& slot : kept_) {
    GraphScratch* empty = nullptr;
    if (slot.compare_exchange_strong(empty, scratch.get(), std::memory_order_release,
                                     std::memory_order_relaxed)) {
      static_cast<void>(scratch.release());
      return;
    }
  }
}

GraphScratchPool::~GraphScratchPool() {
  for (std::atomic<GraphScratch*>& slot : kept_) delete slot.load();
}

}  // namespace nearwise::cpu
