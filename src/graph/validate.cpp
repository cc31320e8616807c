// What a graph promises, and the measure of what it does not.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/check.h"
#include "core/distance.h"
#include "core/float_environment.h"
#include "graph/recall_sample.h"
#include "nearwise/exact.h"
#include "nearwise/knn_graph.h"
#include "ops/exact_search.h"

namespace nearwise {
namespace {

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
           "must have {} neighbours from 0 to {}, given {} in place {}", full, rows - 1, ids[i], i);
    expect(static_cast<std::size_t>(ids[i]) != row, row, "must not be its own neighbour, as in place {}", i);
    expect(!std::isnan(distances[i]), row, "must have distances that are numbers, given NaN in place {}", i);
    if (i == 0) continue;
    const float key = sort_key(metric, distances[i]);
    const float before = sort_key(metric, distances[i - 1]);
    expect(before < key || (before == key && ids[i - 1] < ids[i]), row,
           "must be ordered by distance and then by id, given ({}, {}) before ({}, {}) in place {}",
           distances[i - 1], ids[i - 1], distances[i], ids[i], i);
  }
  for (std::size_t i = full; i < ids.size(); ++i)
    expect(ids[i] == no_id && distances[i] == padding_distance(metric), row,
           "must end in no neighbours where there are no more rows, given {} in place {}", ids[i], i);
  std::vector<Id> sorted(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(full));
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  expect(twice == sorted.end(), row, "must have different neighbours, given {} twice",
         twice == sorted.end() ? no_id : *twice);
}

}  // namespace

void KnnGraph::validate() const {
  if (neighbors.distances.rows() != rows() || neighbors.distances.cols() != degree())
    fail(ErrorCode::corrupt, "knn graph: ids and distances must have one shape, given [{}, {}] and [{}, {}]",
         rows(), degree(), neighbors.distances.rows(), neighbors.distances.cols());
  for (std::size_t row = 0; row < rows(); ++row)
    validate_row(row, rows(), neighbors.ids.row(row), neighbors.distances.row(row), metric);
}

RecallEstimate measure_recall(const Context& context, RowsView rows, const Neighbors& neighbors,
                              Metric metric, std::size_t sample) {
  check_rows("measure_recall", context, rows, rows);
  require(rows.place().kind == DeviceKind::cpu, "measure_recall: rows must be on the host, given rows on {}",
          name(rows.place()));
  require(rows.rows() >= 2, "measure_recall: at least 2 rows expected, given {}", rows.rows());
  require(neighbors.ids.rows() == rows.rows(),
          "measure_recall: neighbours of {} rows expected, given those of {}", rows.rows(),
          neighbors.ids.rows());
  require(neighbors.ids.cols() >= 1, "measure_recall: at least 1 neighbour of each row expected, given 0");
  const DefaultFloatEnvironment environment;
  const graph::RecallSample exact(context, rows, neighbors.ids.cols(), metric,
                                  sample == 0 ? rows.rows() : sample);
  const std::size_t row_bytes = rows.dim() * element_size(rows.type());
  std::vector<std::size_t> found(exact.size());
  // Distances are computed again: those given are part of what is judged.
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const std::uint32_t row = exact.row(i);
    std::vector<Id> ids(neighbors.ids.row(row).begin(), neighbors.ids.row(row).end());
    std::ranges::sort(ids);
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    std::erase_if(ids, [&](Id id) { return id == no_id || id == static_cast<Id>(row); });
    if (ids.empty()) continue;
    std::vector<std::byte> gathered(ids.size() * row_bytes);
    for (std::size_t j = 0; j < ids.size(); ++j) {
      require(ids[j] >= 0 && static_cast<std::size_t>(ids[j]) < rows.rows(),
              "measure_recall: ids from 0 to {} expected, given {} in row {}", rows.rows() - 1, ids[j], row);
      std::memcpy(gathered.data() + j * row_bytes, rows.row(static_cast<std::size_t>(ids[j])), row_bytes);
    }
    const RowsView listed(gathered.data(), rows.type(), ids.size(), rows.dim(), row_bytes);
    const Neighbors distances = knn(context, rows.slice(row, 1), listed, ids.size(), {.metric = metric});
    found[i] =
        static_cast<std::size_t>(std::ranges::count_if(distances.distances.row(0), [&](float distance) {
          return sort_key(metric, distance) <= exact.limit(i);
        }));
  }
  return exact.estimate(found);
}

}  // namespace nearwise
