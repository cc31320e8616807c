// assign: the rows of a block, sorted by partition.
#include <nlohmann/json.hpp>
#include <vector>

#include "backend/context_state.h"
#include "graph/partition/partition_search.h"
#include "io/container/container_writer.h"
#include "ops/finite_rows.h"
#include "plan/graph/group_vectors.h"
#include "plan/partition/trained_partitions.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {

void assign_block(const Context& context, const GraphWork& work, std::size_t pass, std::size_t block) {
  const TrainedPartitions trained(work, pass);
  const PlanInput input = work.input(context);
  const std::size_t first_row = work.shape.first_row(block);
  const RowsView rows = input.slice(first_row, work.shape.rows_of(block));
  check_finite("plan_graph", context, rows, first_row);

  const std::size_t overlap = trained.rule.overlap;
  MemoryBudget& budget = *context.state().budget;
  Buffer<std::uint32_t> partitions(budget, rows.rows() * overlap);
  graph::PartitionSearch(context, trained.centroids, trained.super_partitions,
                         graph::partition_metric(work.options.metric))
      .find(rows, trained.rule, partitions.span());
  // From here on partitions are numbered by their place in the order of groups.
  std::vector<std::uint32_t> place_of(trained.centroids.rows());
  for (std::uint32_t place = 0; place < place_of.size(); ++place) place_of[trained.order(place, 0)] = place;
  for (std::uint32_t& partition : partitions.span())
    if (partition != graph::no_partition) partition = place_of[partition];
  // Counting sort by partition, then by row.
  std::vector<std::uint64_t> ends(trained.centroids.rows() + 1, 0);
  for (const std::uint32_t partition : partitions.span())
    if (partition != graph::no_partition) ++ends[partition + 1];
  for (std::size_t partition = 0; partition < trained.centroids.rows(); ++partition)
    ends[partition + 1] += ends[partition];
  std::vector<std::uint64_t> group_ends(trained.group_ends.rows());
  for (std::size_t group = 0; group < group_ends.size(); ++group)
    group_ends[group] = ends[trained.group_ends(group, 0)];
  Buffer<std::uint32_t> sorted_rows(budget, ends.back());
  Buffer<std::uint32_t> sorted_partitions(budget, ends.back());
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    if (partitions[i] == graph::no_partition) continue;
    const std::uint64_t place = ends[partitions[i]]++;
    sorted_rows[place] = static_cast<std::uint32_t>(first_row + i / overlap);
    sorted_partitions[place] = partitions[i] | (i % overlap == 0 ? nearest_partition : 0);
  }

  ContainerWriter writer(work.file_of(assign_name(pass, block)), "graph_assignment");
  writer.write_metadata(nlohmann::json::object());
  writer.write_section("group_ends",
                       MatrixView<const std::uint64_t>(group_ends.data(), group_ends.size(), 1));
  writer.write_section("rows", MatrixView<const std::uint32_t>(sorted_rows.data(), sorted_rows.size(), 1));
  writer.write_section(
      "partitions", MatrixView<const std::uint32_t>(sorted_partitions.data(), sorted_partitions.size(), 1));
  if (work.shape.groups > 1) write_vectors(context, rows, first_row, sorted_rows.span(), group_ends, writer);
  writer.commit();
}

}  // namespace nearwise::plan
