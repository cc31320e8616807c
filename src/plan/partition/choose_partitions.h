// How many partitions, and which of them rows are in: what costs least of all that is enough for the recall.
#pragma once

#include <cstdint>

#include "core/memory.h"
#include "plan/partition/choose_overlap.h"
#include "plan/partition/super_partitions.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {

struct ChosenPartitions {
  Matrix<float> centroids;
  SuperPartitions super_partitions;  // none where rows are compared with all partitions
  ChosenRule chosen;
  Buffer<std::uint32_t> sampled;  // [weighing rows, overlap] their partitions
};

// Trained on the sample, and weighed by rows that stand for all.
ChosenPartitions choose_partitions(const Context& context, const GraphWork& work, std::size_t pass,
                                   const RowsView& sample, const RowsView& size_sample);

}  // namespace nearwise::plan
