// Reads and checks the output of train_partitions().
#pragma once

#include <cstddef>
#include <cstdint>

#include "graph/partition/partition_search.h"
#include "io/container/container_reader.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {

struct TrainedPartitions {
  // Throws Error(corrupt).
  TrainedPartitions(const GraphWork& work, std::size_t pass);

  ContainerReader reader;
  MatrixView<const float> centroids;
  graph::SuperPartitionsView super_partitions;
  MatrixView<const std::uint32_t> order;       // [partitions, 1] group by group
  MatrixView<const std::uint64_t> group_ends;  // [groups, 1] in `order`
  graph::OverlapRule rule;
  bool is_enough = false;  // the partitions alone reach the target recall
};

}  // namespace nearwise::plan
