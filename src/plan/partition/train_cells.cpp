// train: cells of a pass from a sample of the rows, which of their nearest cells rows are in, and the cells in groups that fit
// in memory.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "backend/context_state.h"
#include "graph/build/random_streams.h"
#include "graph/build/row_sample.h"
#include "io/container/container_writer.h"
#include "plan/partition/choose_cells.h"
#include "plan/partition/group_cells.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {
namespace {

// Of a batch, a group has so many rows by the sample: it may have some more.
constexpr double share_of_batch = 0.97;

}  // namespace

void train_cells(const Context& context, const GraphWork& work, std::size_t pass) {
  const VectorFile file = work.open();
  const graph::RowSample sample(context, file.rows(), work.shape.sampled_rows,
                                graph::random_stream(context.seed(), graph::Draw::cell_rows, pass));
  const graph::RowSample weighing(context, sample.view(),
                                  std::min(sample.view().rows(), GraphShape::weighed_rows),
                                  graph::random_stream(context.seed(), graph::Draw::centroids));
  const ChosenCells cells = choose_cells(context, work, pass, sample.view(), weighing.view());
  const CellGroups groups = group_cells(
      context.state().cancel, cells.centroids, {cells.weighed.span(), cells.chosen.rule.overlap},
      share_of_batch * static_cast<double>(work.shape.batch_rows) / static_cast<double>(work.shape.rows),
      work.shape.groups);

  ContainerWriter writer(work.file_of(train_name(pass)), "graph_cells");
  writer.write_metadata({{"overlap", cells.chosen.rule.overlap},
                         {"reach", cells.chosen.rule.reach},
                         {"is_enough", cells.chosen.is_enough},
                         {"foreseen_recall", cells.chosen.foreseen}});
  writer.write_section("group_ends",
                       MatrixView<const std::uint64_t>(groups.ends.data(), groups.ends.size(), 1));
  writer.write_section("order", MatrixView<const std::uint32_t>(groups.order.data(), groups.order.size(), 1));
  writer.write_section("centroids", MatrixView<const float>(cells.centroids));
  writer.write_section("regions", cells.regions.view().centres);
  writer.write_section("region_ends", cells.regions.view().ends);
  writer.write_section("region_cells", cells.regions.view().cells);
  writer.commit();
}

}  // namespace nearwise::plan
