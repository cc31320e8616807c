// What train_cells() wrote.
#pragma once

#include <cstddef>
#include <cstdint>

#include "io/container/container_reader.h"
#include "plan/partition/cell_search.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {

struct TrainedCells {
  // Throws Error(corrupt).
  TrainedCells(const GraphWork& work, std::size_t pass);

  ContainerReader reader;
  MatrixView<const float> centroids;  // as they were when the rule was chosen
  RegionsView regions;
  MatrixView<const std::uint32_t> order;           // [cells, 1] group by group
  MatrixView<const std::uint64_t> ends_of_groups;  // [groups, 1] in the order
  CellRule rule;
  bool is_enough = false;  // for the recall, without descent
};

}  // namespace nearwise::plan
