// Groups of cells: their rows counted the slow way, small enough, and as few as that takes.
#include "plan/partition/group_cells.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "core/random.h"
#include "io/expect_error.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {
namespace {

// Cells on a line, and rows in up to three that follow each other.
struct Line {
  explicit Line(std::size_t count, std::size_t rows) : centroids(count, 2), cells(rows * 3, no_row) {
    for (std::size_t cell = 0; cell < count; ++cell) {
      centroids(cell, 0) = static_cast<float>(cell);
      centroids(cell, 1) = static_cast<float>(cell % 2);
    }
    const Random random(11);
    for (std::size_t row = 0; row < rows; ++row) {
      const std::size_t first = random.below(2 * row, count);
      const std::size_t own = 1 + random.below(2 * row + 1, 3);
      for (std::size_t i = 0; i < std::min(own, count - first); ++i)
        cells[row * 3 + i] = static_cast<std::uint32_t>(first + i);
    }
  }
  WeighedRows rows() const { return {cells, 3}; }

  Matrix<float> centroids;
  std::vector<std::uint32_t> cells;
};

std::vector<double> counted(const WeighedRows& rows, const CellGroups& groups) {
  std::vector<double> counts;
  std::uint64_t begin = 0;
  for (const std::uint64_t end : groups.ends) {
    const std::set<std::uint32_t> own(groups.order.begin() + static_cast<std::ptrdiff_t>(begin),
                                      groups.order.begin() + static_cast<std::ptrdiff_t>(end));
    double count = 0;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const auto cells = rows.cells.subspan(row * rows.overlap, rows.overlap);
      count += std::ranges::any_of(cells, [&](std::uint32_t cell) { return own.contains(cell); }) ? 1 : 0;
    }
    counts.push_back(count);
    begin = end;
  }
  return counts;
}

// Cells come in pairs that lie far apart and have their rows in common: no cut across an axis keeps them together.
TEST(GroupCells, CellsWithRowsInCommonAreTogether) {
  constexpr std::uint32_t pairs = 100;
  Matrix<float> centroids(2 * pairs, 2);
  std::vector<std::uint32_t> cells;
  const Random random(5);
  for (std::uint32_t cell = 0; cell < 2 * pairs; ++cell) {
    centroids(cell, 0) = static_cast<float>(random.below(2 * cell, 1000));
    centroids(cell, 1) = static_cast<float>(random.below(2 * cell + 1, 1000));
    for (int row = 0; row < 20; ++row) cells.insert(cells.end(), {cell, (cell + pairs) % (2 * pairs)});
  }
  const WeighedRows rows = {cells, 2};
  const std::vector<double> sizes = counted(rows, group_cells(CancelFlag(), centroids, rows, 0.25, 20));
  EXPECT_LE(*std::ranges::max_element(sizes), 0.25 * static_cast<double>(rows.size()));
  // Cut by place alone, almost every row is in two groups.
  EXPECT_LE(std::accumulate(sizes.begin(), sizes.end(), 0.0), 1.1 * static_cast<double>(rows.size()));
  const std::vector<double> mass(2 * pairs, 1);
  const std::vector<double> by_place = counted(rows, cut_cells(CancelFlag(), centroids, mass, 4));
  EXPECT_GE(std::accumulate(by_place.begin(), by_place.end(), 0.0), 1.5 * static_cast<double>(rows.size()));
}

TEST(GroupCells, FewAndSmallEnough) {
  const Line line(200, 20'000);
  for (const double share : {1.0, 0.5, 0.26, 0.1, 0.04}) {
    const CellGroups groups = group_cells(CancelFlag(), line.centroids, line.rows(), share, 60);
    ASSERT_EQ(groups.ends.size(), 60U);
    EXPECT_EQ(groups.ends.back(), 200U);
    std::vector<std::uint32_t> sorted = groups.order;
    std::ranges::sort(sorted);
    for (std::uint32_t cell = 0; cell < 200; ++cell) EXPECT_EQ(sorted[cell], cell);
    const std::vector<double> sizes = counted(line.rows(), groups);
    EXPECT_LE(*std::ranges::max_element(sizes), share * 20'000) << share;
    // A cut of the line is crossed by a cell's rows and a half's, some 150 of 20,000 a time.
    const auto used = std::ranges::count_if(sizes, [](double size) { return size > 0; });
    EXPECT_LE(static_cast<double>(used), 1.3 / share + 1) << share;
  }
}

TEST(GroupCells, MoreThanThereMayBe) {
  const Line line(50, 5000);
  const CellGroups groups = group_cells(CancelFlag(), line.centroids, line.rows(), 0.01, 4);
  const std::vector<double> sizes = counted(line.rows(), groups);
  ASSERT_EQ(sizes.size(), 4U);
  for (const double size : sizes) EXPECT_NEAR(size, 1300, 300);
}

// Also where nothing but the moves of cells takes time: all of them are in one place.
TEST(GroupCells, IsCancelled) {
  Line line(50, 5000);
  CancelFlag cancel;
  cancel.set();
  EXPECT_ERROR(group_cells(cancel, line.centroids, line.rows(), 0.1, 20), cancelled, "cancelled");
  std::fill_n(line.centroids.data(), 100, 1.0F);
  EXPECT_ERROR(group_cells(cancel, line.centroids, line.rows(), 1, 20), cancelled, "cancelled");
}

}  // namespace
}  // namespace nearwise::plan
