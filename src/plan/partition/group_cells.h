// Cells in groups as large as memory allows, by rows that stand for all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/partition/partition_cells.h"

namespace nearwise::plan {

// Some rows, each in up to `overlap` cells: [rows, overlap], no_row where there are no more.
struct WeighedRows {
  std::span<const std::uint32_t> cells;
  std::size_t overlap = 1;

  std::size_t size() const { return cells.size() / overlap; }
  std::span<const std::uint32_t> of(std::size_t row) const;
};

// As few groups as have no more than a share of the rows each, a row counting once in a group, whatever its cells there; no
// more than `most_groups`, which may have larger ones. Cells that have rows in common are together where there is room. Ends of
// `most_groups` groups: those behind are empty.
CellGroups group_cells(const CancelFlag& cancel, MatrixView<const float> centroids, const WeighedRows& rows,
                       double most_share, std::size_t most_groups);

}  // namespace nearwise::plan
