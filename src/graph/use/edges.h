// Edges of a graph from the caller: checked once, then traversed. All of this stops with Error(cancelled)
// while the thread is in a cancelled CancellationScope.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/cancellable.h"
#include "core/distance.h"
#include "nearwise/graph/knn_graph.h"

namespace nearwise::graph {

// Throws Error(invalid_argument) naming the operation if ids and distances differ in shape, an id is neither
// no_id nor a row, or a distance is NaN.
void check_edges(std::string_view operation, const KnnGraph& graph);

// Calls visit(row, neighbour, key) for every edge in the order of rows; smaller keys are nearer (sort_key).
template <typename Visit>
void for_each_edge(const KnnGraph& graph, const Visit& visit) {
  CancellableSteps steps;
  for (std::size_t row = 0; row < graph.rows(); ++row) {
    steps.add(1 + graph.degree());
    for (std::size_t i = 0; i < graph.degree(); ++i)
      if (const Id id = graph.neighbors.ids(row, i); id != no_id)
        visit(static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(id),
              sort_key(graph.metric, graph.neighbors.distances(row, i)));
  }
}

// The edges of each row in both directions: its neighbours, and the rows whose neighbour it is.
class UndirectedEdges {
 public:
  // The graph has passed check_edges() and must outlive this.
  explicit UndirectedEdges(const KnnGraph& graph);

  // Calls visit(other row, key); twice if both rows list each other.
  template <typename Visit>
  void visit(std::uint32_t row, const Visit& visit) const {
    for (std::size_t i = 0; i < graph_.degree(); ++i)
      if (const Id id = graph_.neighbors.ids(row, i); id != no_id)
        visit(static_cast<std::uint32_t>(id), sort_key(graph_.metric, graph_.neighbors.distances(row, i)));
    for (std::size_t i = first_[row]; i < first_[row + 1]; ++i) visit(incoming_[i].row, incoming_[i].key);
  }

 private:
  struct Incoming {
    std::uint32_t row;
    float key;
  };
  const KnnGraph& graph_;
  std::vector<std::size_t> first_;  // [rows + 1], into incoming_
  std::unique_ptr<Incoming[]> incoming_;
};

}  // namespace nearwise::graph
