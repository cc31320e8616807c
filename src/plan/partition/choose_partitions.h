// Chooses the number of partitions and the overlap rule with the lowest cost that reach the target recall.
#pragma once

#include <cstdint>

#include "core/memory.h"
#include "graph/partition/super_partitions.h"
#include "plan/partition/choose_overlap.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {

struct ChosenPartitions {
  Matrix<float> centroids;
  graph::SuperPartitions super_partitions;  // none if rows are compared with all partitions
  graph::ChosenOverlap overlap;
  Buffer<std::uint32_t> sampled;  // [size_sample, overlap] the partitions of the sampled rows
};

// sample: training rows. size_sample: a representative sample that estimates the sizes of partitions.
ChosenPartitions choose_partitions(const Context& context, const GraphWork& work, std::size_t pass,
                                   const RowsView& sample, const RowsView& size_sample);

}  // namespace nearwise::plan
