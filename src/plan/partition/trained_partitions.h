// What train_partitions() wrote.
#pragma once

#include <cstddef>
#include <cstdint>

#include "io/container/container_reader.h"
#include "plan/partition/partition_search.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {

struct TrainedPartitions {
  // Throws Error(corrupt).
  TrainedPartitions(const GraphWork& work, std::size_t pass);

  ContainerReader reader;
  MatrixView<const float> centroids;  // as they were when the rule was chosen
  SuperPartitionsView super_partitions;
  MatrixView<const std::uint32_t> order;           // [partitions, 1] group by group
  MatrixView<const std::uint64_t> ends_of_groups;  // [groups, 1] in the order
  OverlapRule rule;
  bool is_enough = false;  // for the recall, without descent
};

}  // namespace nearwise::plan
