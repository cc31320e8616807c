// How a change of a graph index is put in place, while no other thread reads the index.
#pragma once

#include <optional>
#include <span>

#include "core/progress.h"
#include "graph_index/graph_index_state.h"
#include "index/id_table.h"
#include "index/index_lock.h"

namespace nearwise::graph_index {

// A graph whose rows are in ascending order of their ids. `graph` becomes the one before. calibration: none
// if it stays.
void replace_graph(GraphIndexInternals::State& state, index::IndexLock::Changing& changing,
                   const CancelFlag& cancel, SearchedGraph& graph, Id next_id,
                   const std::optional<GraphCalibration>& calibration = {});

// Ids that leave the table of an index, and those of rows that follow the last one.
class IdChange {
 public:
  // Makes a table if there is none. Within Changing; all other methods, within Writing.
  IdChange(GraphIndexInternals::State& state, std::span<const Id> removed, std::span<const Id> added,
           Id next_id);
  // After this nothing fails.
  void reserve();
  void commit() noexcept;

 private:
  GraphIndexInternals::State& state_;
  const std::span<const Id> removed_;
  const std::span<const Id> added_;
  const Id next_id_;
  const std::size_t first_row_;
  std::optional<index::IdTable> table_;
};

}  // namespace nearwise::graph_index
