// Graph indexes: removing vectors, and leaving out what was removed.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "backend/context_state.h"
#include "backend/stages.h"
#include "core/float_environment.h"
#include "core/fork.h"
#include "core/lost_pages.h"
#include "core/progress.h"
#include "graph_index/memory_needs.h"
#include "graph_index/update/compact_graph.h"
#include "graph_index/update/graph_change.h"
#include "ops/memory_limit.h"

namespace nearwise {

void graph_index::replace_graph(GraphIndexInternals::State& state, index::IndexLock::Changing& changing,
                                const CancelFlag& cancel, SearchedGraph& graph, Id next_id,
                                const std::optional<GraphCalibration>& calibration) {
  std::optional<index::IdTable> no_table;
  const index::IndexLock::Writing writing(changing, &cancel);
  const NoFork whole;
  std::swap(state.graph, graph);
  std::swap(state.table, no_table);
  state.next_id = next_id;
  state.unconnected = 0;
  if (calibration) state.set_calibration(*calibration);
  state.publish();
}

std::size_t GraphIndex::remove(const Context& context, std::span<const Id> ids) {
  State& state = *state_;
  const Context::State& caller = context.state();
  caller.cancel.check();
  index::IndexLock::Changing changing(state.lock, &caller.cancel);
  const DefaultFloatEnvironment environment;
  graph_index::SearchedGraph& graph = state.graph;
  check_mapped(graph.rows.vectors);
  ProgressMeter progress(caller.options.progress, caller.clock, "remove", ids.size());
  // An id that was given twice counts once.
  std::vector<Id> gone(ids.begin(), ids.end());
  std::ranges::sort(gone);
  gone.erase(std::unique(gone.begin(), gone.end()), gone.end());
  std::erase_if(gone, [&](Id id) { return !state.find(id); });
  if (!gone.empty()) {
    std::vector<std::uint32_t> rows;
    for (const Id id : gone) rows.push_back(static_cast<std::uint32_t>(*state.find(id)));
    std::shared_ptr<const graph_index::AllowedRows> live = graph_index::allowed_of(graph.live_words(rows));
    std::optional<graph_index::SearchedGraph> fresh;
    if (graph_index::has_many_removed(live->count, graph.rows.count())) try {
        fresh = graph_index::compacted(context.without_progress(), state.budget, graph, live->bits());
      } catch (const Error& error) {
        // Removal must not need memory: a later change compacts.
        if (error.code() != ErrorCode::out_of_memory) throw;
      }
    if (fresh) {
      check_lost_pages();
      graph_index::replace_graph(state, changing, caller.cancel, *fresh, state.next_id);
    } else {
      check_lost_pages();
      const std::uint64_t key = FilterInternals::new_key();
      const index::IndexLock::Writing writing(changing, &caller.cancel);
      const NoFork whole;
      std::swap(graph.live, live);
      graph.filter_key = key;
      if (state.table)
        for (const Id id : gone) state.table->erase(id);
      state.publish();
    }
  }
  progress.add(ids.size());
  progress.finish();
  return gone.size();
}

void GraphIndex::compact(const Context& context) {
  State& state = *state_;
  const Context::State& caller = context.state();
  caller.cancel.check();
  index::IndexLock::Changing changing(state.lock, &caller.cancel);
  const DefaultFloatEnvironment environment;
  const graph_index::SearchedGraph& graph = state.graph;
  if (!graph.live && !state.table && graph.rows.capacity <= graph.rows.count()) return;
  check_mapped(graph.rows.vectors);
  if (is_limited(context, *state.budget)) {
    const std::uint64_t kept = graph_index::capacity_bytes(graph.rows, graph.live_count());
    check_memory("GraphIndex.compact", context, *state.budget, kept,
                 kept + graph_index::compacting_bytes(context, graph.rows, graph.live_bits()));
  }
  Stages stages(context, "compact");
  graph_index::SearchedGraph fresh =
      graph_index::compacted(stages.next(1, 0), state.budget, graph, graph.live_bits());
  check_lost_pages();
  graph_index::replace_graph(state, changing, caller.cancel, fresh, state.next_id);
  stages.finish();
}

}  // namespace nearwise
