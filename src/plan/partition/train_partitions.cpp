// train: the partitions of a pass, their overlap rule, and groups of partitions that fit in memory.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "backend/context_state.h"
#include "graph/random_streams.h"
#include "graph/row_sample.h"
#include "io/container/container_writer.h"
#include "plan/partition/choose_partitions.h"
#include "plan/partition/group_partitions.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {
namespace {

// Rows of a group, as estimated from the sample, relative to a batch; the margin covers the estimate's error.
constexpr double group_fill = 0.97;

}  // namespace

void train_partitions(const Context& context, const GraphWork& work, std::size_t pass) {
  const PlanInput input = work.input(context);
  const Random random = graph::random_stream(context.seed(), graph::Draw::partition_rows, pass);
  const std::size_t count = work.shape.sampled_rows;
  const graph::RowSample sample(
      context,
      input.rows_at(count,
                    [&](std::size_t i) { return graph::RowSample::draw(random, work.shape.rows, count, i); }),
      count, random);
  const graph::RowSample size_sample(context, sample.view(),
                                     std::min(sample.view().rows(), GraphShape::size_sample_rows),
                                     graph::random_stream(context.seed(), graph::Draw::centroids));
  const ChosenPartitions partitions =
      choose_partitions(context, work, pass, sample.view(), size_sample.view());
  const graph::OverlapRule& rule = partitions.overlap.rule;
  const PartitionGroups groups = group_partitions(
      context.state().cancel, partitions.centroids, {partitions.sampled.span(), rule.overlap},
      group_fill * static_cast<double>(work.shape.batch_rows) / static_cast<double>(work.shape.rows),
      work.shape.groups);

  ContainerWriter writer(work.file_of(train_name(pass)), "graph_partitions");
  writer.write_metadata({{"overlap", rule.overlap},
                         {"reach", rule.reach.value()},
                         {"is_enough", partitions.overlap.is_enough},
                         {"predicted_recall", partitions.overlap.predicted_recall}});
  const graph::SuperPartitionsView super_partitions = partitions.super_partitions.view();
  writer.write_section("group_ends",
                       MatrixView<const std::uint64_t>(groups.ends.data(), groups.ends.size(), 1));
  writer.write_section("order", MatrixView<const std::uint32_t>(groups.order.data(), groups.order.size(), 1));
  writer.write_section("centroids", MatrixView<const float>(partitions.centroids));
  writer.write_section("super_partitions", super_partitions.centroids);
  writer.write_section("super_partition_ends", super_partitions.ends);
  writer.write_section("super_partition_members", super_partitions.partitions);
  writer.commit();
}

}  // namespace nearwise::plan
