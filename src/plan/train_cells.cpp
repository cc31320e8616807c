// train: centroids of a pass from a sample of the rows, which of their nearest cells rows are in, and the cells in groups
// that fit in memory.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "backend/context_state.h"
#include "graph/random_streams.h"
#include "graph/row_sample.h"
#include "io/container_writer.h"
#include "nearwise/kmeans.h"
#include "plan/cell_search.h"
#include "plan/choose_rule.h"
#include "plan/graph_work.h"
#include "plan/group_cells.h"

namespace nearwise::plan {
namespace {

// As few as in memory: cells need not be good, only not bad.
constexpr std::size_t iterations = 4;
// So many cells are trained at once; more in two levels.
constexpr std::size_t most_flat_cells = 256;
// Of a batch, a group has so many rows by the sample: it may have some more.
constexpr double share_of_batch = 0.97;

Matrix<float> train(const Context& context, const GraphWork& work, const RowsView& sample) {
  const KMeansOptions options = {
      .metric = metric_of_cells(work.options.metric), .iterations = iterations, .tolerance = 0};
  const auto training = work.shape.cells <= most_flat_cells ? train_kmeans : train_hierarchical_kmeans;
  return training(context, sample, work.shape.cells, options).centroids;
}

CellGroups group(const Context& context, const GraphWork& work, const RowsView& sample,
                 const Matrix<float>& centroids, const CellSearch& search, const CellRule& rule) {
  const graph::RowSample some(context, sample, std::min(sample.rows(), GraphShape::weighed_rows),
                              graph::random_stream(context.seed(), graph::Draw::centroids));
  Buffer<std::uint32_t> cells(*context.state().budget, some.view().rows() * rule.overlap);
  search.find(some.view(), rule, cells.span());
  return group_cells(
      context.state().cancel, centroids, {cells.span(), rule.overlap},
      share_of_batch * static_cast<double>(work.shape.batch_rows) / static_cast<double>(work.shape.rows),
      work.shape.groups);
}

}  // namespace

void train_cells(const Context& context, const GraphWork& work, std::size_t pass) {
  const VectorFile file = work.open();
  const graph::RowSample sample(context, file.rows(), work.shape.sampled_rows,
                                graph::random_stream(context.seed(), graph::Draw::cell_rows, pass));
  const Matrix<float> centroids = train(context, work, sample.view());
  const Metric metric = metric_of_cells(work.options.metric);
  const Regions regions = work.shape.has_regions()
                              ? Regions::make(context, centroids, sample.view(), work.shape.overlap, metric)
                              : Regions{.centres = Matrix<float>(0, work.shape.dim), .ends = {}, .cells = {}};
  const CellSearch search(context, centroids, regions.view(), metric);
  const ChosenRule chosen = choose_rule(context, work, pass, search);
  const CellGroups groups = group(context, work, sample.view(), centroids, search, chosen.rule);

  ContainerWriter writer(work.file_of(train_name(pass)), "graph_cells");
  writer.write_metadata({{"overlap", chosen.rule.overlap},
                         {"reach", chosen.rule.reach},
                         {"is_enough", chosen.is_enough},
                         {"foreseen_recall", chosen.foreseen}});
  writer.write_section("group_ends",
                       MatrixView<const std::uint64_t>(groups.ends.data(), groups.ends.size(), 1));
  writer.write_section("order", MatrixView<const std::uint32_t>(groups.order.data(), groups.order.size(), 1));
  writer.write_section("centroids", MatrixView<const float>(centroids));
  writer.write_section("regions", regions.view().centres);
  writer.write_section("region_ends", regions.view().ends);
  writer.write_section("region_cells", regions.view().cells);
  writer.commit();
}

}  // namespace nearwise::plan
