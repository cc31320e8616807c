// smoothest_path in three steps: the minimax edge, the fewest such edges, and the path.
#include "nearwise/graph/smoothest_path.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <string_view>
#include <utility>
#include <vector>

#include "core/cancellable.h"
#include "core/check.h"
#include "graph/use/edges.h"

namespace nearwise {
namespace {

using Row = std::uint32_t;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr Row unreached = std::numeric_limits<Row>::max();

// The smallest bound on edge keys at which `to` is reachable; nullopt if it is not connected. Rows reachable
// below the bound are visited at once, others wait in a heap until the bound rises to them.
std::optional<float> least_level(const graph::UndirectedEdges& edges, std::size_t rows, Row from, Row to) {
  // The smallest key to enter a waiting row; NaN: not waiting.
  std::vector<float> lowest = filled_vector(rows, std::nanf(""));
  std::vector<char> flooded = filled_vector<char>(rows, 0);
  CancellableSteps steps;
  using Shore = std::pair<float, Row>;
  std::priority_queue<Shore, std::vector<Shore>, std::greater<>> shores;
  std::vector<Row> rising;
  float level = -infinity;
  shores.emplace(level, from);
  while (!shores.empty()) {
    const auto [key, entry] = shores.top();
    shores.pop();
    steps.add(1);
    if (flooded[entry] != 0) continue;
    level = std::max(level, key);
    flooded[entry] = 1;
    rising.push_back(entry);
    while (!rising.empty()) {
      const Row row = rising.back();
      rising.pop_back();
      edges.visit(row, [&](Row other, float other_key) {
        steps.add(1);
        if (flooded[other] != 0) return;
        if (other_key <= level) {
          flooded[other] = 1;
          rising.push_back(other);
        } else if (!(other_key >= lowest[other])) {
          lowest[other] = other_key;
          shores.emplace(other_key, other);
        }
      });
    }
    if (flooded[to] != 0) return level;
  }
  return std::nullopt;
}

// Number of edges of at most `level` from each row to `to`, up to that of `from`.
std::vector<Row> steps_to(const graph::UndirectedEdges& edges, std::size_t rows, Row from, Row to,
                          float level) {
  std::vector<Row> steps = filled_vector(rows, unreached);
  CancellableSteps visits;
  std::vector<Row> front = {to};
  steps[to] = 0;
  for (Row next = 1; steps[from] == unreached; ++next) {
    std::vector<Row> found;
    for (const Row row : front)
      edges.visit(row, [&](Row other, float key) {
        visits.add(1);
        if (key > level || steps[other] != unreached) return;
        steps[other] = next;
        found.push_back(other);
      });
    NEARWISE_ASSERT(!found.empty());  // the level was chosen so that there is a path
    front = std::move(found);
  }
  return steps;
}

Row checked_row(std::string_view name, const KnnGraph& graph, Id row) {
  require(row >= 0 && static_cast<std::size_t>(row) < graph.rows(),
          "smoothest_path: {} must be a row from 0 to {}, got {}", name, static_cast<Id>(graph.rows()) - 1,
          row);
  return static_cast<Row>(row);
}

}  // namespace

std::optional<SmoothestPath> smoothest_path(const KnnGraph& graph, Id start, Id end) {
  graph::check_edges("smoothest_path", graph);
  Row row = checked_row("start", graph, start);
  const Row last = checked_row("end", graph, end);
  SmoothestPath path = {.rows = {start}, .distances = {}, .widest = std::nullopt};
  if (row == last) return path;

  const graph::UndirectedEdges edges(graph);
  const std::optional<float> level = least_level(edges, graph.rows(), row, last);
  if (!level) return std::nullopt;
  const std::vector<Row> steps = steps_to(edges, graph.rows(), row, last, *level);
  CancellableSteps visits;
  while (row != last) {
    // The two directions of an edge may differ in graphs from other programs; the shorter one counts.
    std::pair<Row, float> best = {unreached, infinity};
    edges.visit(row, [&](Row other, float key) {
      visits.add(1);
      if (key <= *level && steps[other] + 1 == steps[row]) best = std::min(best, {other, key});
    });
    row = best.first;
    path.rows.push_back(static_cast<Id>(row));
    path.distances.push_back(distance_of_key(graph.metric, best.second));
  }
  path.widest = distance_of_key(graph.metric, *level);
  return path;
}

}  // namespace nearwise
