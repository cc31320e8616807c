// assign: the rows of a block by the cells that they are in.
#include <nlohmann/json.hpp>
#include <vector>

#include "backend/context_state.h"
#include "io/container/container_writer.h"
#include "ops/finite_rows.h"
#include "plan/graph/group_vectors.h"
#include "plan/partition/cell_search.h"
#include "plan/partition/trained_cells.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {

void assign_block(const Context& context, const GraphWork& work, std::size_t pass, std::size_t block) {
  const TrainedCells trained(work, pass);
  const VectorFile file = work.open();
  const std::size_t first_row = work.shape.first_row(block);
  const RowsView rows = file.rows().slice(first_row, work.shape.rows_of(block));
  check_finite("plan_graph", context, rows, first_row);

  const std::size_t overlap = trained.rule.overlap;
  MemoryBudget& budget = *context.state().budget;
  Buffer<std::uint32_t> cells(budget, rows.rows() * overlap);
  CellSearch(context, trained.centroids, trained.regions, metric_of_cells(work.options.metric))
      .find(rows, trained.rule, cells.span());
  // From here on by their places in the order of groups.
  std::vector<std::uint32_t> place_of(trained.centroids.rows());
  for (std::uint32_t place = 0; place < place_of.size(); ++place) place_of[trained.order(place, 0)] = place;
  for (std::uint32_t& cell : cells.span())
    if (cell != no_row) cell = place_of[cell];
  // By cell, and in each by row.
  std::vector<std::uint64_t> ends(trained.centroids.rows() + 1, 0);
  for (const std::uint32_t cell : cells.span())
    if (cell != no_row) ++ends[cell + 1];
  for (std::size_t cell = 0; cell < trained.centroids.rows(); ++cell) ends[cell + 1] += ends[cell];
  std::vector<std::uint64_t> group_ends(trained.ends_of_groups.rows());
  for (std::size_t group = 0; group < group_ends.size(); ++group)
    group_ends[group] = ends[trained.ends_of_groups(group, 0)];
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
  if (work.shape.groups > 1) write_vectors(context, rows, first_row, sorted_rows.span(), group_ends, writer);
  writer.commit();
}

}  // namespace nearwise::plan
