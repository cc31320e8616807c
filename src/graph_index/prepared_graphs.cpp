#include "graph_index/prepared_graphs.h"

#include <utility>

#include "backend/dispatch.h"

namespace nearwise::graph_index {

PreparedGraphs::PreparedGraphs(const Context& context, const SearchGraphView& view,
                               std::shared_ptr<MemoryBudget> budget)
    : view_(view), budget_(std::move(budget)) {
  on(context);
}

PreparedGraphs::~PreparedGraphs() {
  for (Prepared* entry = first_; entry != nullptr;) delete std::exchange(entry, entry->next);
}

const PreparedGraph& PreparedGraphs::on(const Context& context) const {
  const Place place = context.state().place;
  const auto find = [&](const Prepared* entry, const Prepared* end) -> const PreparedGraph* {
    for (; entry != end; entry = entry->next)
      if (entry->place == place) return entry->graph.get();
    return nullptr;
  };
  Prepared* first = first_.load(std::memory_order_acquire);
  if (const PreparedGraph* const known = find(first, nullptr)) return *known;
  const auto stream = open_stream(context);
  auto made = std::make_unique<Prepared>();
  made->place = place;
  made->graph = dispatch(&Ops::prepare_graph, "prepare_graph", *stream, PrepareGraphArgs{view_, budget_});
  made->next = first;
  while (!first_.compare_exchange_weak(made->next, made.get(), std::memory_order_acq_rel)) {
    // Another thread was faster, maybe for the same device.
    if (const PreparedGraph* const known = find(made->next, first)) return *known;
    first = made->next;
  }
  return *made.release()->graph;
}

}  // namespace nearwise::graph_index
