#include "plan/partition/group_cells.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plan/tasks/graph_work.h"

namespace nearwise::plan {
namespace {

// Tries to get groups small enough, and rounds in which every cell may move.
constexpr int tries = 8;
constexpr int rounds = 8;
// A round that moves fewer of the cells is the last.
constexpr std::size_t few_moves = 500;
// Groups come out unlike, and cells need room to move: on average groups are to be so full.
constexpr double usual_fill = 0.93;

// Groups by cells, each of which moves to where most of its rows are already.
class Refinement {
 public:
  Refinement(const WeighedRows& rows, const CellGroups& groups, double most_rows)
      : rows_(rows),
        most_rows_(most_rows),
        group_of_(groups.order.size()),
        sizes_(groups.ends.size(), 0),
        begins_(groups.order.size() + 1, 0),
        with_(groups.ends.size(), 0) {
    std::uint64_t at = 0;
    for (std::size_t group = 0; group < groups.ends.size(); ++group)
      for (; at < groups.ends[group]; ++at) group_of_[groups.order[at]] = static_cast<std::uint32_t>(group);
    list_rows();
    for (std::size_t row = 0; row < rows.size(); ++row)
      for_each_group(row, no_row, [&](std::uint32_t group) { sizes_[group] += 1; });
  }

  void run(const CancelFlag& cancel) {
    const std::size_t cells = group_of_.size();
    for (int round = 0; round < rounds; ++round) {
      std::size_t moved = 0;
      for (std::uint32_t cell = 0; cell < cells; ++cell) {
        cancel.check();
        moved += move(cell) ? 1 : 0;
      }
      if (moved <= cells / few_moves) break;
    }
  }

  // [groups] rows
  std::span<const double> sizes() const { return sizes_; }

  CellGroups groups() const {
    CellGroups groups;
    groups.ends.assign(sizes_.size(), 0);
    for (const std::uint32_t group : group_of_) ++groups.ends[group];
    std::partial_sum(groups.ends.begin(), groups.ends.end(), groups.ends.begin());
    groups.order.resize(group_of_.size());
    std::iota(groups.order.begin(), groups.order.end(), 0U);
    std::ranges::stable_sort(groups.order, {}, [&](std::uint32_t cell) { return group_of_[cell]; });
    return groups;
  }

 private:
  // The rows of every cell.
  void list_rows() {
    for (const std::uint32_t cell : rows_.cells)
      if (cell != no_row) ++begins_[cell + 1];
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    listed_.resize(begins_.back());
    std::vector<std::uint64_t> next(begins_.begin(), begins_.end() - 1);
    for (std::size_t row = 0; row < rows_.size(); ++row)
      for (const std::uint32_t cell : rows_.of(row)) listed_[next[cell]++] = static_cast<std::uint32_t>(row);
  }

  // Every group once that has a cell of the row, other than this one.
  template <typename Function>
  void for_each_group(std::size_t row, std::uint32_t without, const Function& function) const {
    const auto cells = rows_.of(row);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (cells[i] == without) continue;
      const std::uint32_t group = group_of_[cells[i]];
      const bool seen = std::ranges::any_of(
          cells.first(i), [&](std::uint32_t cell) { return cell != without && group_of_[cell] == group; });
      if (!seen) function(group);
    }
  }

  // Where it saves rows, or its group has too many, to the group with room that has most of its rows.
  bool move(std::uint32_t cell) {
    const auto own = std::span(listed_).subspan(begins_[cell], begins_[cell + 1] - begins_[cell]);
    if (own.empty()) return false;
    std::ranges::fill(with_, 0.0);
    for (const std::uint32_t row : own)
      for_each_group(row, cell, [&](std::uint32_t group) { with_[group] += 1; });
    const std::uint32_t from = group_of_[cell];
    const auto all = static_cast<double>(own.size());
    std::uint32_t best = from;
    for (std::uint32_t group = 0; group < sizes_.size(); ++group) {
      if (group == from || sizes_[group] + all - with_[group] > most_rows_) continue;
      const bool first = best == from;
      if (first ? with_[group] > with_[from] || sizes_[from] > most_rows_ : with_[group] > with_[best])
        best = group;
    }
    if (best == from) return false;
    sizes_[from] -= all - with_[from];
    sizes_[best] += all - with_[best];
    group_of_[cell] = best;
    return true;
  }

  const WeighedRows rows_;
  const double most_rows_;
  std::vector<std::uint32_t> group_of_;  // [cells]
  std::vector<double> sizes_;            // [groups]
  std::vector<std::uint64_t> begins_;    // [cells + 1] in listed_
  std::vector<std::uint32_t> listed_;    // rows
  std::vector<double> with_;             // [groups] rows of a cell that are in the group by another cell
};

}  // namespace

std::span<const std::uint32_t> WeighedRows::of(std::size_t row) const {
  const auto all = cells.subspan(row * overlap, overlap);
  return all.first(static_cast<std::size_t>(std::ranges::find(all, no_row) - all.begin()));
}

CellGroups group_cells(const CancelFlag& cancel, MatrixView<const float> centroids, const WeighedRows& rows,
                       double most_share, std::size_t most_groups) {
  std::vector<double> mass(centroids.rows(),
                           1);  // no cell is without any, or all of them would be in one group
  for (const std::uint32_t cell : rows.cells)
    if (cell != no_row) mass[cell] += 1;
  const double most_rows = most_share * static_cast<double>(rows.size());
  const auto groups_for = [&](double all_rows) {
    return static_cast<std::size_t>(
        std::clamp(std::ceil(all_rows / most_rows), 1.0, static_cast<double>(most_groups)));
  };
  std::size_t count = groups_for(static_cast<double>(rows.size()));
  CellGroups groups;
  for (int attempt = 0; attempt < tries; ++attempt) {
    Refinement refinement(rows, cut_cells(cancel, centroids, mass, count), most_rows);
    refinement.run(cancel);
    groups = refinement.groups();
    const auto sizes = refinement.sizes();
    if (*std::ranges::max_element(sizes) <= most_rows || count == most_groups) break;
    const double all_rows = std::accumulate(sizes.begin(), sizes.end(), 0.0);
    count = std::min(most_groups, std::max(count + 1, groups_for(all_rows / usual_fill)));
  }
  order_cells(cancel, centroids, mass, groups);
  groups.ends.resize(most_groups, groups.order.size());
  return groups;
}

}  // namespace nearwise::plan
