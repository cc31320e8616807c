// How many cells, and which of them rows are in: what costs least of all that is enough for the recall.
#pragma once

#include <cstdint>

#include "core/memory.h"
#include "plan/partition/cell_regions.h"
#include "plan/partition/choose_overlap.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {

struct ChosenCells {
  Matrix<float> centroids;
  Regions regions;  // none where rows are compared with all cells
  ChosenRule chosen;
  Buffer<std::uint32_t> weighed;  // [weighing rows, overlap] their cells
};

// Trained on the sample, and weighed by rows that stand for all.
ChosenCells choose_cells(const Context& context, const GraphWork& work, std::size_t pass,
                         const RowsView& sample, const RowsView& weighing);

}  // namespace nearwise::plan
