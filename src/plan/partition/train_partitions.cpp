// train: partitions of a pass from a sample of the rows, which of their nearest partitions rows are in, and the partitions in groups that fit
// in memory.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "backend/context_state.h"
#include "graph/build/random_streams.h"
#include "graph/build/row_sample.h"
#include "io/container/container_writer.h"
#include "plan/partition/choose_partitions.h"
#include "plan/partition/group_partitions.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {
namespace {

// Of a batch, a group has so many rows by the sample: it may have some more.
constexpr double share_of_batch = 0.97;

}  // namespace

void train_partitions(const Context& context, const GraphWork& work, std::size_t pass) {
  const VectorFile file = work.open();
  const graph::RowSample sample(context, file.rows(), work.shape.sampled_rows,
                                graph::random_stream(context.seed(), graph::Draw::partition_rows, pass));
  const graph::RowSample size_sample(context, sample.view(),
                                     std::min(sample.view().rows(), GraphShape::size_sample_rows),
                                     graph::random_stream(context.seed(), graph::Draw::centroids));
  const ChosenPartitions partitions =
      choose_partitions(context, work, pass, sample.view(), size_sample.view());
  const PartitionGroups groups = group_partitions(
      context.state().cancel, partitions.centroids,
      {partitions.sampled.span(), partitions.chosen.rule.overlap},
      share_of_batch * static_cast<double>(work.shape.batch_rows) / static_cast<double>(work.shape.rows),
      work.shape.groups);

  ContainerWriter writer(work.file_of(train_name(pass)), "graph_partitions");
  writer.write_metadata({{"overlap", partitions.chosen.rule.overlap},
                         {"reach", partitions.chosen.rule.reach},
                         {"is_enough", partitions.chosen.is_enough},
                         {"predicted_recall", partitions.chosen.predicted}});
  writer.write_section("group_ends",
                       MatrixView<const std::uint64_t>(groups.ends.data(), groups.ends.size(), 1));
  writer.write_section("order", MatrixView<const std::uint32_t>(groups.order.data(), groups.order.size(), 1));
  writer.write_section("centroids", MatrixView<const float>(partitions.centroids));
  writer.write_section("super_partitions", partitions.super_partitions.view().centres);
  writer.write_section("super_partition_ends", partitions.super_partitions.view().ends);
  writer.write_section("super_partition_members", partitions.super_partitions.view().partitions);
  writer.commit();
}

}  // namespace nearwise::plan
