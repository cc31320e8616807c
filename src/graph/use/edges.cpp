#include "graph/use/edges.h"

#include <cmath>
#include <limits>

#include "core/cancellable.h"
#include "core/check.h"

namespace nearwise::graph {

void check_edges(std::string_view operation, const KnnGraph& graph) {
  const Matrix<Id>& ids = graph.neighbors.ids;
  const Matrix<float>& distances = graph.neighbors.distances;
  require(distances.rows() == ids.rows() && distances.cols() == ids.cols(),
          "{}: ids and distances of one shape expected, got [{}, {}] and [{}, {}]", operation, ids.rows(),
          ids.cols(), distances.rows(), distances.cols());
  constexpr std::size_t max_rows = std::numeric_limits<std::int32_t>::max();
  require(ids.rows() <= max_rows, "{}: at most {} rows expected, got {}", operation, max_rows, ids.rows());
  const auto rows = static_cast<Id>(ids.rows());
  check_cancelled();
  CancellableSteps steps;
  for (std::size_t row = 0; row < ids.rows(); ++row) {
    steps.add(1 + ids.cols());
    for (std::size_t i = 0; i < ids.cols(); ++i) {
      const Id id = ids(row, i);
      require(id >= no_id && id < rows, "{}: neighbours from 0 to {} expected, got {} of row {}", operation,
              rows - 1, id, row);
      require(!std::isnan(distances(row, i)), "{}: distances that are numbers expected, got NaN of row {}",
              operation, row);
    }
  }
}

UndirectedEdges::UndirectedEdges(const KnnGraph& graph)
    : graph_(graph), first_(filled_vector<std::size_t>(graph.rows() + 2, 0)) {
  // Counts are stored at row + 2, so that the fill moves each start to the begin of the next row.
  for_each_edge(graph, [&](std::uint32_t, std::uint32_t to, float) { ++first_[to + 2]; });
  CancellableSteps steps;
  for (std::size_t row = 2; row < first_.size(); ++row) {
    steps.add(1);
    first_[row] += first_[row - 1];
  }
  incoming_ = std::make_unique_for_overwrite<Incoming[]>(first_.back());
  for_each_edge(graph, [&](std::uint32_t from, std::uint32_t to, float key) {
    incoming_[first_[to + 1]++] = {.row = from, .key = key};
  });
  first_.pop_back();
}

}  // namespace nearwise::graph
