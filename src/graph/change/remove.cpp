// remove_from_knn_graph: rows that lost neighbours look for others.
//
// Few of them meet all rows. More meet the neighbours of their neighbours, those that are gone among them: who was near
// a row that is gone is near to those that were near it. If they are more than an eighth of all rows, all meet in partitions.
#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "core/check.h"
#include "core/checked.h"
#include "core/float_environment.h"
#include "graph/build/nn_descent.h"
#include "graph/change/change.h"
#include "graph/change/update.h"
#include "ops/finite_rows.h"
#include "ops/memory_limit.h"

namespace nearwise {
namespace graph {
namespace {

constexpr const char* operation = "remove_from_knn_graph";
// One in so many rows: more of them are better served by partitions. SIFT, 1 million rows, 50,000 removed (380,000 bereft): asking the
// neighbours of neighbours took, with the round of descent that it then needed, as long as a build.
constexpr std::size_t max_affected = 8;
constexpr std::uint32_t gone = std::numeric_limits<std::uint32_t>::max();

// The rows that stay, one after the other, and their numbers before and after.
class Remaining {
 public:
  // removed: different ids of rows.
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

  // Whether it was there until now.
  bool remove(Id id) { return std::exchange(numbers_[static_cast<std::size_t>(id)], gone) != gone; }
  void gather(const RowsView& rows) {
    std::uint32_t count = 0;
    for (std::size_t row = 0; row < rows.rows(); ++row) {
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
  // gone, or its number now.
  std::uint32_t number_of_old(Id id) const { return numbers_[static_cast<std::size_t>(id)]; }

 private:
  std::size_t row_bytes_;
  Buffer<std::uint32_t> numbers_;
  Buffer<std::uint32_t> olds_;
  Buffer<std::byte> gathered_;
};

void mark_removed(Remaining& remaining, std::size_t rows, std::span<const Id> removed) {
  for (const Id id : removed) {
    require(id >= 0 && static_cast<std::size_t>(id) < rows, "{}: ids from 0 to {} expected, given {}",
            operation, rows - 1, id);
    require(remaining.remove(id), "{}: different ids expected, given {} twice", operation, id);
  }
}

// The nearest neighbours of all neighbours first.
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
  require(rows.rows() == graph.rows(), "{}: the {} rows of the graph expected, given {}", operation,
          graph.rows(), rows.rows());
  require(removed.size() <= rows.rows(), "{}: at most {} ids expected, one for each row, given {}", operation,
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
  remaining.gather(rows);
  const RowsView left = remaining.view(rows);

  const InitialNeighbors initial = [&](std::size_t row, std::vector<InitialNeighbor>& found) {
    const auto ids = graph.neighbors.ids.row(remaining.old_of(row));
    const auto distances = graph.neighbors.distances.row(remaining.old_of(row));
    for (std::size_t i = 0; i < ids.size() && ids[i] != no_id; ++i)
      if (const std::uint32_t number = remaining.number_of_old(ids[i]); number != gone)
        found.push_back({number, distances[i]});
  };
  Buffer<std::uint32_t> numbers(*context.state().budget, count);
  std::size_t bereft_count = 0;
  std::vector<InitialNeighbor> found;
  for (std::size_t row = 0; row < count; ++row) {
    found.clear();
    initial(row, found);
    if (found.size() < std::min(all.degree, count - 1))
      numbers[bereft_count++] = static_cast<std::uint32_t>(row);
  }
  const std::span<const std::uint32_t> affected = numbers.span().first(bereft_count);
  const bool known_exactly = graph.report.method == GraphMethod::exact;
  switch (choose_update_method(count, affected.size(), known_exactly, all, tuning)) {
    case UpdateMethod::exact: return exact_graph(context, left, all);
    case UpdateMethod::compare:
      return compare_with_all(operation, context, left, {initial, affected, known_exactly}, all, tuning);
    case UpdateMethod::partitions: break;
  }
  return run_nn_descent(operation, context, left, all, tuning, [&](Builder& builder) {
    builder.begin(initial);
    // Where many lost some, some lost several, and few of those whom they should ask are left.
    if (affected.size() > count / max_affected) {
      builder.join_partitions(0);
      return;
    }
    builder.compare_candidates(affected, [&](std::size_t row, std::vector<std::uint32_t>& candidates) {
      append_candidates(graph.neighbors, remaining, row, candidates);
    });
    builder.fill_lists();
  });
}

}  // namespace graph

KnnGraph remove_from_knn_graph(const Context& context, RowsView rows, const KnnGraph& graph,
                               std::span<const Id> removed, const KnnGraphChangeOptions& options) {
  return graph::remove(context, rows, graph, removed, options,
                       graph::change_tuning(graph.degree(), options.recall));
}

}  // namespace nearwise
