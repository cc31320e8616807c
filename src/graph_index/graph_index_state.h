// The members of a graph index.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/memory.h"
#include "graph_index/searched_graph.h"
#include "index/id_table.h"
#include "index/index_lock.h"
#include "nearwise/graph_index.h"
#include "ops/memory_limit.h"

namespace nearwise {

namespace graph_index {

inline constexpr std::size_t default_beam = 64;
// Calibration measures the recall of this many neighbours, and of many.
inline constexpr std::size_t calibration_neighbors = 10;
inline constexpr std::size_t many_neighbors = 100;
inline constexpr std::size_t max_graph_rows = 0x7FFF'FFFF;
// Indexes that are built of at least this many vectors are traversed by 4-bit codes.
inline constexpr std::size_t min_nibble_rows = 500'000;
inline constexpr std::string_view container_kind = "graph_index";

// How a search runs.
struct GraphBeam {
  std::size_t width = 1;
  bool is_evaluated = false;  // GraphCalibration::evaluates_beam
};

// What searches take where nothing is given.
struct GraphDefaults {
  std::size_t beam = default_beam;
  std::size_t beam_of_100 = many_neighbors + default_beam;
  bool evaluates_beam = false;

  // For k results of an index of this many rows.
  std::size_t beam_for(std::size_t k, std::size_t rows) const;
};

}  // namespace graph_index

// Calls that read the members between `lock` and the published ones hold it. Those above it never change.
struct GraphIndex::State {
  State(std::shared_ptr<MemoryBudget> used_budget, graph_index::SearchedGraph made);

  const Metric metric;
  const std::size_t dim;
  const ElementType type;  // of the vectors
  const std::size_t degree;
  const std::shared_ptr<MemoryBudget> budget;

  mutable index::IndexLock lock = {};
  graph_index::SearchedGraph graph;
  std::optional<index::IdTable> table = {};  // rows of ids; none: rows are in ascending order of their ids
  Id next_id = 0;
  std::size_t unconnected = 0;  // rows added since connect_rows() was called
  graph_index::GraphDefaults defaults = {};
  std::optional<GraphCalibration> calibration = {};
  std::map<std::string, std::string> provenance = {};

  // For callers that must not wait for the lock: of the last change that is complete.
  std::atomic<std::size_t> published_size = 0;
  std::atomic<Id> published_next_id = 0;

  // One above the largest id of these rows, as far as there is one.
  static Id next_id_of(const graph_index::GraphRows& rows);
  // The row of an id, unless it is removed.
  std::optional<std::size_t> find(Id id) const;
  // A table of all rows that are not removed, with room for more ids below next_id. Throws Error(corrupt),
  // which begins with `source`, if two of them have one id.
  index::IdTable make_table(std::size_t more, Id next_id, const std::string& source = {}) const;
  // No vectors, of the same kind: for checks of arguments.
  RowsView shape() const { return {nullptr, type, 0, dim, dim * element_size(type)}; }

  void set_calibration(const GraphCalibration& found) noexcept {
    defaults = {found.beam, found.beam_of_100, found.evaluates_beam};
    calibration = found;
  }

  // Called after a change, within its Writing.
  void publish() noexcept {
    published_size = graph.live_count();
    published_next_id = next_id;
  }
};

struct GraphIndexInternals {
  using State = GraphIndex::State;
  static const State& state_of(const GraphIndex& index) { return *index.state_; }
  static GraphIndex make(std::unique_ptr<State> state) { return GraphIndex(std::move(state)); }
  static GraphCalibration calibrate(GraphIndex& index, const Context& context,
                                    const GraphCalibrationOptions& options, MemoryCheck check);
};

}  // namespace nearwise
