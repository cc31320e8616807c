#include "plan/partition/group_partitions.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "plan/tasks/graph_work.h"

namespace nearwise::plan {
namespace {

constexpr int max_attempts = 8;         // with more and more groups
constexpr int max_rounds = 8;           // of moves per attempt
constexpr std::size_t min_moves = 500;  // refinement stops when fewer than one in this many partitions move
// Mean fill of groups when their number is estimated; the margin is for uneven sizes and for moves.
constexpr double mean_fill = 0.93;

// Local search: moves each partition to the group that already holds most of its rows.
class Refinement {
 public:
  Refinement(const SampledRows& rows, const PartitionGroups& groups, double max_rows)
      : rows_(rows),
        max_rows_(max_rows),
        group_of_(groups.order.size()),
        sizes_(groups.ends.size(), 0),
        begins_(groups.order.size() + 1, 0),
        with_(groups.ends.size(), 0) {
    std::uint64_t at = 0;
    for (std::size_t group = 0; group < groups.ends.size(); ++group)
      for (; at < groups.ends[group]; ++at) group_of_[groups.order[at]] = static_cast<std::uint32_t>(group);
    list_rows();
    for (std::size_t row = 0; row < rows.size(); ++row)
      for_each_group(row, graph::no_partition, [&](std::uint32_t group) { sizes_[group] += 1; });
  }

  void run(const CancelFlag& cancel) {
    const std::size_t partitions = group_of_.size();
    for (int round = 0; round < max_rounds; ++round) {
      std::size_t moved = 0;
      for (std::uint32_t partition = 0; partition < partitions; ++partition) {
        cancel.check();
        moved += move(partition) ? 1 : 0;
      }
      if (moved <= partitions / min_moves) break;
    }
  }

  // [groups] rows
  std::span<const double> sizes() const { return sizes_; }

  PartitionGroups groups() const {
    PartitionGroups groups;
    groups.ends.assign(sizes_.size(), 0);
    for (const std::uint32_t group : group_of_) ++groups.ends[group];
    std::partial_sum(groups.ends.begin(), groups.ends.end(), groups.ends.begin());
    groups.order.resize(group_of_.size());
    std::iota(groups.order.begin(), groups.order.end(), 0U);
    std::ranges::stable_sort(groups.order, {}, [&](std::uint32_t partition) { return group_of_[partition]; });
    return groups;
  }

 private:
  void list_rows() {
    for (const std::uint32_t partition : rows_.partitions)
      if (partition != graph::no_partition) ++begins_[partition + 1];
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    listed_.resize(begins_.back());
    std::vector<std::uint64_t> next(begins_.begin(), begins_.end() - 1);
    for (std::size_t row = 0; row < rows_.size(); ++row)
      for (const std::uint32_t partition : rows_.of(row))
        listed_[next[partition]++] = static_cast<std::uint32_t>(row);
  }

  // Calls function once per group that holds a partition of the row other than `without`.
  template <typename Function>
  void for_each_group(std::size_t row, std::uint32_t without, const Function& function) const {
    const auto partitions = rows_.of(row);
    for (std::size_t i = 0; i < partitions.size(); ++i) {
      if (partitions[i] == without) continue;
      const std::uint32_t group = group_of_[partitions[i]];
      const bool seen = std::ranges::any_of(partitions.first(i), [&](std::uint32_t partition) {
        return partition != without && group_of_[partition] == group;
      });
      if (!seen) function(group);
    }
  }

  // If it saves rows, or its group is too large: to the group with room that has most of its rows.
  bool move(std::uint32_t partition) {
    const auto own =
        std::span(listed_).subspan(begins_[partition], begins_[partition + 1] - begins_[partition]);
    if (own.empty()) return false;
    std::ranges::fill(with_, 0.0);
    for (const std::uint32_t row : own)
      for_each_group(row, partition, [&](std::uint32_t group) { with_[group] += 1; });
    const std::uint32_t from = group_of_[partition];
    const auto all = static_cast<double>(own.size());
    std::uint32_t best = from;
    for (std::uint32_t group = 0; group < sizes_.size(); ++group) {
      if (group == from || sizes_[group] + all - with_[group] > max_rows_) continue;
      const bool first = best == from;
      if (first ? with_[group] > with_[from] || sizes_[from] > max_rows_ : with_[group] > with_[best])
        best = group;
    }
    if (best == from) return false;
    sizes_[from] -= all - with_[from];
    sizes_[best] += all - with_[best];
    group_of_[partition] = best;
    return true;
  }

  const SampledRows rows_;
  const double max_rows_;
  std::vector<std::uint32_t> group_of_;  // [partitions]
  std::vector<double> sizes_;            // [groups]
  std::vector<std::uint64_t> begins_;    // [partitions + 1] in listed_
  std::vector<std::uint32_t> listed_;    // rows
  std::vector<double> with_;  // [groups] rows of a partition that are in the group by another partition
};

}  // namespace

std::span<const std::uint32_t> SampledRows::of(std::size_t row) const {
  const auto all = partitions.subspan(row * overlap, overlap);
  return all.first(static_cast<std::size_t>(std::ranges::find(all, graph::no_partition) - all.begin()));
}

PartitionGroups group_partitions(const CancelFlag& cancel, MatrixView<const float> centroids,
                                 const SampledRows& rows, double max_share, std::size_t max_groups) {
  std::vector<double> mass(centroids.rows(),
                           1);  // at least 1, or all empty partitions would end up in one group
  for (const std::uint32_t partition : rows.partitions)
    if (partition != graph::no_partition) mass[partition] += 1;
  const double max_rows = max_share * static_cast<double>(rows.size());
  const auto groups_for = [&](double all_rows) {
    return static_cast<std::size_t>(
        std::clamp(std::ceil(all_rows / max_rows), 1.0, static_cast<double>(max_groups)));
  };
  std::size_t count = groups_for(static_cast<double>(rows.size()));
  PartitionGroups groups;
  for (int attempt = 0; attempt < max_attempts; ++attempt) {
    Refinement refinement(rows, cut_partitions(cancel, centroids, mass, count), max_rows);
    refinement.run(cancel);
    groups = refinement.groups();
    const auto sizes = refinement.sizes();
    if (*std::ranges::max_element(sizes) <= max_rows || count == max_groups) break;
    const double all_rows = std::accumulate(sizes.begin(), sizes.end(), 0.0);
    count = std::min(max_groups, std::max(count + 1, groups_for(all_rows / mean_fill)));
  }
  order_partitions(cancel, centroids, mass, groups);
  groups.ends.resize(max_groups, groups.order.size());
  return groups;
}

}  // namespace nearwise::plan
