// assign: the rows of a block by the cells that they are in.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "backend/context_state.h"
#include "io/container_reader.h"
#include "io/container_writer.h"
#include "nearwise/exact.h"
#include "nearwise/ivf.h"
#include "ops/finite_rows.h"
#include "plan/graph_work.h"

namespace nearwise::plan {
namespace {

// Rows whose cells are searched at a time.
constexpr std::size_t tile_rows = std::size_t{1} << 16;
// So many cells are searched one by one; an inverted file of more finds this share of the nearest.
constexpr std::size_t most_searched_cells = 4096;
constexpr double share_of_cells = 0.9;

// The cells of rows: the nearest of few centroids, and of many those that an inverted file of them finds, so that a row costs
// as much as the square root of their number.
class CellSearch {
 public:
  CellSearch(const Context& context, MatrixView<const float> centroids, Metric metric)
      : context_(context), centroids_(centroids), metric_(metric) {
    if (centroids.rows() > most_searched_cells)
      index_.emplace(IvfFlat::build(context, centroids, {.metric = metric}, {.recall = share_of_cells}));
  }

  // [rows, count] nearest first; no_id where there are no more.
  Neighbors nearest(const RowsView& rows, std::size_t count) const {
    return index_ ? index_->search(context_, rows, count)
                  : knn(context_, rows, centroids_, count, {.metric = metric_});
  }

 private:
  const Context& context_;
  const MatrixView<const float> centroids_;
  const Metric metric_;
  std::optional<IvfFlat> index_;
};

// [rows, overlap] nearest first; no_row where a row is in no more
Buffer<std::uint32_t> cells_of(const Context& context, const GraphWork& work, const RowsView& rows,
                               const MatrixView<const float>& centroids) {
  const std::size_t overlap = work.shape.overlap;
  const Metric metric = metric_of_cells(work.options.metric);
  const CellSearch search(context, centroids, metric);
  Buffer<std::uint32_t> cells(*context.state().budget, rows.rows() * overlap);
  for (std::size_t first = 0; first < rows.rows(); first += tile_rows) {
    const std::size_t count = std::min(tile_rows, rows.rows() - first);
    const Neighbors nearest = search.nearest(rows.slice(first, count), overlap);
    for (std::size_t row = 0; row < count; ++row) {
      const std::size_t near = near_cells(metric, nearest.distances.row(row));
      for (std::size_t i = 0; i < overlap; ++i) {
        const Id cell = nearest.ids(row, i);
        cells[(first + row) * overlap + i] =
            i < near && cell != no_id ? static_cast<std::uint32_t>(cell) : no_row;
      }
    }
  }
  return cells;
}

}  // namespace

void assign_block(const Context& context, const GraphWork& work, std::size_t pass, std::size_t block) {
  const ContainerReader trained = ContainerReader::open(work.file_of(train_name(pass)));
  const MatrixView<const float> centroids = trained.section("centroids").rows<float>();
  const MatrixView<const std::uint64_t> ends_of_groups = trained.section("group_ends").rows<std::uint64_t>();
  const VectorFile file = work.open();
  const std::size_t first_row = work.shape.first_row(block);
  const RowsView rows = file.rows().slice(first_row, work.shape.rows_of(block));
  check_finite("plan_graph", context, rows, first_row);

  const std::size_t overlap = work.shape.overlap;
  const Buffer<std::uint32_t> cells = cells_of(context, work, rows, centroids);
  // By cell, and in each by row.
  std::vector<std::uint64_t> ends(centroids.rows() + 1, 0);
  for (const std::uint32_t cell : cells.span())
    if (cell != no_row) ++ends[cell + 1];
  for (std::size_t cell = 0; cell < centroids.rows(); ++cell) ends[cell + 1] += ends[cell];
  std::vector<std::uint64_t> group_ends(ends_of_groups.rows());
  for (std::size_t group = 0; group < group_ends.size(); ++group)
    group_ends[group] = ends[ends_of_groups(group, 0)];
  MemoryBudget& budget = *context.state().budget;
  Buffer<std::uint32_t> sorted_rows(budget, ends.back());
  Buffer<std::uint32_t> sorted_cells(budget, ends.back());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (cells[i] == no_row) continue;
    const std::uint64_t place = ends[cells[i]]++;
    sorted_rows[place] = static_cast<std::uint32_t>(first_row + i / overlap);
    sorted_cells[place] = cells[i] | (i % overlap == 0 ? nearest_cell : 0);
  }

  ContainerWriter writer(work.file_of(assign_name(pass, block)), "graph_assignment");
  writer.write_metadata(nlohmann::json::object());
  writer.write_section("group_ends",
                       MatrixView<const std::uint64_t>(group_ends.data(), group_ends.size(), 1));
  writer.write_section("rows", MatrixView<const std::uint32_t>(sorted_rows.data(), sorted_rows.size(), 1));
  writer.write_section("cells", MatrixView<const std::uint32_t>(sorted_cells.data(), sorted_cells.size(), 1));
  writer.commit();
}

}  // namespace nearwise::plan
