// Where there are many cells: regions of them, so that a row is compared with those near its region and no others.
//
// Rows of one region are compared with the same cells, which is exact search of many rows among few. In an inverted file of the
// cells every row looks at lists of its own, and every task would make it again: 10M rows among 40,000 cells took 53 s that way and
// 40 s this way, vectors written besides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise::plan {

// None: rows are compared with all cells.
struct RegionsView {
  MatrixView<const float> centres;        // [regions, dim]
  MatrixView<const std::uint64_t> ends;   // [regions, 1] in cells
  MatrixView<const std::uint32_t> cells;  // [all, 1] those near a region, at least one

  std::size_t size() const { return centres.rows(); }
  std::span<const std::uint32_t> cells_of(std::size_t region) const {
    const std::uint64_t begin = region == 0 ? 0 : ends(region - 1, 0);
    return {cells.data() + begin, static_cast<std::size_t>(ends(region, 0) - begin)};
  }
};

struct Regions {
  Matrix<float> centres;
  std::vector<std::uint64_t> ends;
  std::vector<std::uint32_t> cells;

  RegionsView view() const {
    return {centres, {ends.data(), ends.size(), 1}, {cells.data(), cells.size(), 1}};
  }

  // At the most, of so many cells.
  static std::size_t most_regions(std::size_t cells);
  // Regions that a cell is near, and cells that are near a region.
  static constexpr std::size_t most_of_cell = 32;
  static std::size_t most_near(std::size_t cells);
  // Bytes on the budget while they are made, beside the sample.
  static std::uint64_t bytes(const Context& context, std::size_t cells, std::size_t dim, std::size_t overlap);

  // A cell is near so many regions as it takes to find nearly all of the `overlap` nearest cells of each row of the sample.
  static Regions make(const Context& context, MatrixView<const float> centroids, const RowsView& sample,
                      std::size_t overlap, Metric metric);
};

}  // namespace nearwise::plan
