#include "nearwise/graph/graph_structure.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "core/cancellable.h"
#include "core/check.h"
#include "graph/use/disjoint_sets.h"
#include "graph/use/edges.h"

namespace nearwise {
namespace {

// Components of the edges with keys of at most `most`, if they have at least `min_rows` members.
RowGroups groups_by_edges(const KnnGraph& graph, float most, std::size_t min_rows) {
  graph::DisjointSets sets(graph.rows());
  graph::for_each_edge(graph, [&](std::uint32_t row, std::uint32_t neighbor, float key) {
    if (key <= most) sets.unite(row, neighbor);
  });
  // The lowest row of a set comes first and numbers it.
  RowGroups groups = {.labels = filled_vector<Id>(graph.rows(), 0), .sizes = {}};
  CancellableSteps steps;
  for (std::uint32_t row = 0; row < graph.rows(); ++row) {
    steps.add(1);
    ++groups.labels[sets.lowest(row)];
  }
  for (std::uint32_t row = 0; row < graph.rows(); ++row) {
    steps.add(1);
    const std::uint32_t lowest = sets.lowest(row);
    if (lowest != row) {
      groups.labels[row] = groups.labels[lowest];
    } else if (const auto members = static_cast<std::size_t>(groups.labels[row]); members >= min_rows) {
      groups.labels[row] = static_cast<Id>(groups.sizes.size());
      groups.sizes.push_back(members);
    } else {
      groups.labels[row] = no_id;
    }
  }
  return groups;
}

// Whether each neighbour, [rows * degree], has the row among its own.
std::vector<bool> find_mutual(const KnnGraph& graph) {
  std::vector<bool> is_mutual = filled_vector(graph.rows() * graph.degree(), false);
  CancellableSteps steps;
  for (std::size_t row = 0; row < graph.rows(); ++row)
    for (std::size_t i = 0; i < graph.degree(); ++i) {
      steps.add(graph.degree());
      const Id id = graph.neighbors.ids(row, i);
      if (id == no_id) continue;
      const std::span<const Id> theirs = graph.neighbors.ids.row(static_cast<std::size_t>(id));
      if (std::ranges::find(theirs, static_cast<Id>(row)) != theirs.end())
        is_mutual[row * graph.degree() + i] = true;
    }
  return is_mutual;
}

}  // namespace

RowGroups connected_components(const KnnGraph& graph) {
  graph::check_edges("connected_components", graph);
  return groups_by_edges(graph, std::numeric_limits<float>::infinity(), 1);
}

RowGroups near_duplicates(const KnnGraph& graph, float distance) {
  require(!std::isnan(distance), "near_duplicates: a distance that is a number expected, got NaN");
  graph::check_edges("near_duplicates", graph);
  return groups_by_edges(graph, sort_key(graph.metric, distance), 2);
}

RangeNeighbors mutual_neighbors(const KnnGraph& graph) {
  graph::check_edges("mutual_neighbors", graph);
  const std::vector<bool> is_mutual = find_mutual(graph);
  CancellableSteps steps;
  std::size_t count = 0;
  for (const bool is_one : is_mutual) {
    steps.add(1);
    count += is_one ? 1 : 0;
  }
  RangeNeighbors mutual;
  // Vectors that grow are copied, which cannot be cancelled.
  mutual.offsets.reserve(graph.rows() + 1);
  mutual.ids.reserve(count);
  mutual.distances.reserve(count);
  mutual.offsets.push_back(0);
  for (std::size_t row = 0; row < graph.rows(); ++row) {
    steps.add(1 + graph.degree());
    for (std::size_t i = 0; i < graph.degree(); ++i) {
      if (!is_mutual[row * graph.degree() + i]) continue;
      mutual.ids.push_back(graph.neighbors.ids(row, i));
      mutual.distances.push_back(graph.neighbors.distances(row, i));
    }
    mutual.offsets.push_back(mutual.ids.size());
  }
  return mutual;
}

}  // namespace nearwise
