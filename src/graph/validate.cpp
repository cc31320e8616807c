// The contract of a graph, and the recall of neighbour lists.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/check.h"
#include "core/checked.h"
#include "core/distance.h"
#include "core/float_environment.h"
#include "core/progress.h"
#include "graph/contract.h"
#include "graph/recall_sample.h"
#include "nearwise/exact.h"
#include "nearwise/graph/knn_graph.h"
#include "ops/check_rows.h"

namespace nearwise {
namespace {

constexpr std::size_t task_rows = 4096;

template <typename... Args>
void expect(bool holds, std::size_t row, fmt::format_string<Args...> format, Args&&... args) {
  if (!holds)
    fail(ErrorCode::corrupt, "knn graph: row {} {}", row, fmt::format(format, std::forward<Args>(args)...));
}

void validate_row(std::size_t row, std::size_t rows, std::span<const Id> ids,
                  std::span<const float> distances, Metric metric) {
  const std::size_t full = std::min(ids.size(), rows - 1);
  for (std::size_t i = 0; i < full; ++i) {
    expect(ids[i] >= 0 && static_cast<std::size_t>(ids[i]) < rows, row,
           "must have {} neighbours from 0 to {}, got {} at position {}", full, rows - 1, ids[i], i);
    expect(static_cast<std::size_t>(ids[i]) != row, row,
           "must not be its own neighbour, got it at position {}", i);
    expect(!std::isnan(distances[i]), row, "must have distances that are numbers, got NaN at position {}", i);
    if (i == 0) continue;
    const float key = sort_key(metric, distances[i]);
    const float before = sort_key(metric, distances[i - 1]);
    expect(before < key || (before == key && ids[i - 1] < ids[i]), row,
           "must be ordered by distance and then by id, got ({}, {}) before ({}, {}) at position {}",
           distances[i - 1], ids[i - 1], distances[i], ids[i], i);
  }
  for (std::size_t i = full; i < ids.size(); ++i)
    expect(ids[i] == no_id && distances[i] == padding_distance(metric), row,
           "must be padded after the last other row, got {} at position {}", ids[i], i);
  std::vector<Id> sorted(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(full));
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  expect(twice == sorted.end(), row, "must have different neighbours, got {} twice",
         twice == sorted.end() ? no_id : *twice);
}

}  // namespace

void KnnGraph::validate() const {
  if (neighbors.distances.rows() != rows() || neighbors.distances.cols() != degree())
    fail(ErrorCode::corrupt, "knn graph: ids and distances must have one shape, got [{}, {}] and [{}, {}]",
         rows(), degree(), neighbors.distances.rows(), neighbors.distances.cols());
  for (std::size_t row = 0; row < rows(); ++row) {
    if (row % task_rows == 0) check_cancelled();
    validate_row(row, rows(), neighbors.ids.row(row), neighbors.distances.row(row), metric);
  }
}

void graph::check_contract(const Context& context, const KnnGraph& graph) {
  const Neighbors& neighbors = graph.neighbors;
  if (neighbors.distances.rows() != graph.rows() || neighbors.distances.cols() != graph.degree())
    graph.validate();
  try {
    context.state().threads->for_each(divide_up(graph.rows(), task_rows), [&](std::size_t task) {
      context.state().cancel.check();
      for (std::size_t row = task * task_rows; row < std::min(graph.rows(), (task + 1) * task_rows); ++row)
        validate_row(row, graph.rows(), neighbors.ids.row(row), neighbors.distances.row(row), graph.metric);
    });
  } catch (const Error& error) {
    // Threads may find any violation first: report the lowest row.
    if (error.code() == ErrorCode::corrupt) graph.validate();
    throw;
  }
}

RecallEstimate measure_recall(const Context& context, RowsView rows, const Neighbors& neighbors,
                              Metric metric, std::optional<std::size_t> sample) {
  check_rows("measure_recall", context, rows, rows);
  require(rows.place().kind == DeviceKind::cpu, "measure_recall: rows must be on the host, got rows on {}",
          name(rows.place()));
  require(rows.rows() >= 2, "measure_recall: at least 2 rows expected, got {}", rows.rows());
  require(neighbors.ids.rows() == rows.rows(),
          "measure_recall: neighbours of {} rows expected, got those of {}", rows.rows(),
          neighbors.ids.rows());
  require(neighbors.ids.cols() >= 1, "measure_recall: at least 1 neighbour of each row expected, got 0");
  const DefaultFloatEnvironment environment;
  const graph::RecallSample exact(context, rows, neighbors.ids.cols(), metric, sample.value_or(rows.rows()));
  return exact.estimate([&](std::uint32_t row) {
    const auto ids = neighbors.ids.row(row);
    for (const Id id : ids)
      require(id == no_id || (id >= 0 && static_cast<std::size_t>(id) < rows.rows()),
              "measure_recall: ids from 0 to {} expected, got {} in row {}", rows.rows() - 1, id, row);
    return std::vector<Id>(ids.begin(), ids.end());
  });
}

}  // namespace nearwise
