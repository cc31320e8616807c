// remove_from_knn_graph: rows that lost neighbours get new ones.
//
// Few such rows are compared with all rows. More are compared with the neighbours of their neighbours,
// removed ones included: rows near a removed row are near each other. If more than an eighth of all rows are
// affected, all rows are compared within partitions.
#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "core/check.h"
#include "core/checked.h"
#include "core/float_environment.h"
#include "graph/build/nn_descent.h"
#include "graph/change/change.h"
#include "graph/change/update_method.h"
#include "ops/finite_rows.h"
#include "ops/memory_limit.h"

namespace nearwise {
namespace graph {
namespace {

constexpr const char* operation = "remove_from_knn_graph";
// If more than one in 8 rows is affected, partitions are faster. SIFT 1M, 50,000 removed, 380,000 affected:
// neighbours of neighbours, with the NN-Descent iteration they then need, took as long as a build.
constexpr std::size_t max_affected = 8;
constexpr std::uint32_t gone = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t rows_per_check = 1024;  // of cancellation

// The remaining rows, gathered, with their old and new numbers.
class Remaining {
 public:
  // removed: the number of distinct ids.
  Remaining(const Context& context, const RowsView& rows, std::size_t removed)
      : row_bytes_(rows.dim() * element_size(rows.type())),
        numbers_(*context.state().budget, rows.rows()),
        olds_(*context.state().budget, rows.rows() - removed),
        gathered_(*context.state().budget, checked_multiply(olds_.size(), row_bytes_, operation)) {
    std::ranges::fill(numbers_.span(), 0U);
  }

  static std::uint64_t bytes(const RowsView& rows, std::size_t removed) {
    return rows.rows() * sizeof(std::uint32_t) +
           (rows.rows() - removed) * (sizeof(std::uint32_t) + rows.dim() * element_size(rows.type())) + 192;
  }

  // Returns whether the row was present.
  bool remove(Id id) { return std::exchange(numbers_[static_cast<std::size_t>(id)], gone) != gone; }
  void gather(const RowsView& rows, const CancelFlag& cancel) {
    std::uint32_t count = 0;
    for (std::size_t row = 0; row < rows.rows(); ++row) {
      if (row % rows_per_check == 0) cancel.check();
      if (numbers_[row] == gone) continue;
      olds_[count] = static_cast<std::uint32_t>(row);
      std::memcpy(gathered_.data() + count * row_bytes_, rows.row(row), row_bytes_);
      numbers_[row] = count++;
    }
  }

  RowsView view(const RowsView& rows) const {
    return {gathered_.data(), rows.type(), olds_.size(), rows.dim(), row_bytes_};
  }
  std::uint32_t old_of(std::size_t row) const { return olds_[row]; }
  // The new number, or `gone`.
  std::uint32_t number_of_old(Id id) const { return numbers_[static_cast<std::size_t>(id)]; }

 private:
  std::size_t row_bytes_;
  Buffer<std::uint32_t> numbers_;
  Buffer<std::uint32_t> olds_;
  Buffer<std::byte> gathered_;
};

void mark_removed(Remaining& remaining, std::size_t rows, std::span<const Id> removed) {
  for (const Id id : removed) {
    require(id >= 0 && static_cast<std::size_t>(id) < rows, "{}: ids from 0 to {} expected, got {}",
            operation, rows - 1, id);
    require(remaining.remove(id), "{}: different ids expected, got {} twice", operation, id);
  }
}

// Ordered by rank: the first neighbours of all neighbours come first.
void append_candidates(const Neighbors& neighbors, const Remaining& remaining, std::size_t row,
                       std::vector<std::uint32_t>& found) {
  const std::uint32_t old = remaining.old_of(row);
  const auto around = neighbors.ids.row(old);
  for (std::size_t i = 0; i < around.size(); ++i)
    for (const Id between : around) {
      if (between == no_id) break;
      const Id id = neighbors.ids(static_cast<std::size_t>(between), i);
      if (id == no_id || static_cast<std::uint32_t>(id) == old) continue;
      if (const std::uint32_t number = remaining.number_of_old(id); number != gone) found.push_back(number);
    }
}

}  // namespace

KnnGraph remove(const Context& context, const RowsView& rows, const KnnGraph& graph,
                std::span<const Id> removed, const KnnGraphChangeOptions& options, const Tuning& tuning) {
  const KnnGraphOptions all = options_of(graph, options);
  check_arguments(operation, context, rows, all);
  require(rows.rows() == graph.rows(), "{}: the {} rows of the graph expected, got {}", operation,
          graph.rows(), rows.rows());
  require(removed.size() <= rows.rows(), "{}: at most {} ids expected, one for each row, got {}", operation,
          rows.rows(), removed.size());
  const DefaultFloatEnvironment environment;
  context.state().cancel.check();
  check_finite(operation, context, rows);
  const std::size_t count = rows.rows() - removed.size();
  check_memory(
      operation, context,
      Remaining::bytes(rows, removed.size()) + count * sizeof(std::uint32_t) + 64 +
          (count <= all.degree + 1 ? 0 : Builder::bytes(context, rows.slice(0, count), all, tuning)));
  check_graph(operation, "the graph", context, rows, graph);
  Remaining remaining(context, rows, removed.size());
  mark_removed(remaining, rows.rows(), removed);
  remaining.gather(rows, context.state().cancel);
  const RowsView left = remaining.view(rows);

  const InitialNeighbors initial = [&](std::size_t row, std::vector<InitialNeighbor>& found) {
    const auto ids = graph.neighbors.ids.row(remaining.old_of(row));
    const auto distances = graph.neighbors.distances.row(remaining.old_of(row));
    for (std::size_t i = 0; i < ids.size() && ids[i] != no_id; ++i)
      if (const std::uint32_t number = remaining.number_of_old(ids[i]); number != gone)
        found.push_back({number, distances[i]});
  };
  Buffer<std::uint32_t> numbers(*context.state().budget, count);
  std::size_t affected_count = 0;
  std::vector<InitialNeighbor> found;
  for (std::size_t row = 0; row < count; ++row) {
    if (row % rows_per_check == 0) context.state().cancel.check();
    found.clear();
    initial(row, found);
    if (found.size() < std::min(all.degree, count - 1))
      numbers[affected_count++] = static_cast<std::uint32_t>(row);
  }
  const std::span<const std::uint32_t> affected = numbers.span().first(affected_count);
  const bool is_exact = graph.report.method == GraphMethod::exact;
  switch (choose_update_method(count, affected.size(), is_exact, all, tuning)) {
    case UpdateMethod::exact: return exact_graph(context, left, all);
    case UpdateMethod::compare:
      return compare_with_all(operation, context, left, {initial, affected, is_exact}, all, tuning);
    case UpdateMethod::partitions: break;
  }
  return run_nn_descent(operation, context, left, all, tuning, [&](Builder& builder, const Context& step) {
    builder.begin(initial);
    // With many affected rows, too few of their neighbours' neighbours remain.
    if (affected.size() > count / max_affected) {
      builder.join_partitions(step, 0);
      return;
    }
    builder.compare_candidates(step, affected, [&](std::size_t row, std::vector<std::uint32_t>& candidates) {
      append_candidates(graph.neighbors, remaining, row, candidates);
    });
    builder.fill_lists();
  });
}

}  // namespace graph

KnnGraph remove_from_knn_graph(const Context& context, RowsView rows, const KnnGraph& graph,
                               std::span<const Id> removed, const KnnGraphChangeOptions& options) {
  return graph::remove(context, rows, graph, removed, options,
                       graph::change_tuning(graph.degree(), options.target_recall));
}

}  // namespace nearwise
