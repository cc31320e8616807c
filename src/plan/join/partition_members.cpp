#include "plan/join/partition_members.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "backend/context_state.h"
#include "core/checked.h"
#include "core/memory.h"
#include "nearwise/exact.h"
#include "ops/gather_rows.h"

namespace nearwise::plan {
namespace {

// Partitions that a row is compared with at first, and how many times as many if these do not suffice. A
// tight threshold reaches few.
constexpr std::size_t first_nearest = 16;
constexpr std::size_t growth = 4;
constexpr std::size_t rows_per_task = 64;

struct TaskMembers {
  std::vector<PartitionMember> members;
  std::vector<std::uint32_t> incomplete;  // rows, by their place
};

}  // namespace

MemberSearch::MemberSearch(const Context& context, MatrixView<const float> centroids,
                           const PartitionReach& reach, std::size_t piece, MatrixView<const float> between)
    : context_(context.without_progress()),
      centroids_(centroids),
      reach_(reach),
      piece_(piece),
      between_(between),
      farthest_(centroids.rows(), std::numeric_limits<float>::infinity()) {
  for (std::size_t home = 0; home < between.rows(); ++home) {
    const auto earlier = between.row(home).first(home);
    farthest_[home] = earlier.empty() ? 0 : *std::ranges::max_element(earlier);
  }
}

void MemberSearch::search(const RowsView& rows, std::size_t first_row, const Take& take) const {
  const std::size_t nearest = std::min(first_nearest, centroids_.rows());
  const std::size_t tile_rows = std::max<std::size_t>(1, piece_ / nearest);
  Buffer<std::uint32_t> numbers(*context_.state().budget, std::min(tile_rows, rows.rows()));
  for (std::size_t first = 0; first < rows.rows(); first += tile_rows) {
    const std::size_t count = std::min(tile_rows, rows.rows() - first);
    const auto of_tile = numbers.span().first(count);
    std::iota(of_tile.begin(), of_tile.end(), static_cast<std::uint32_t>(first_row + first));
    search_nearest(rows.slice(first, count), of_tile, nearest, take);
  }
}

void MemberSearch::search_nearest(const RowsView& rows, std::span<const std::uint32_t> numbers,
                                  std::size_t nearest, const Take& take) const {
  MemoryBudget& budget = *context_.state().budget;
  const bool is_all = nearest == centroids_.rows();
  std::vector<std::uint32_t> incomplete;
  {
    const Reservation reservation(
        budget, rows.rows() * nearest * (sizeof(Id) + sizeof(float) + sizeof(PartitionMember)));
    const Neighbors found = knn(context_, rows, centroids_, nearest, {.metric = reach_.metric()});
    std::vector<TaskMembers> tasks(divide_up(rows.rows(), rows_per_task));
    context_.state().threads->for_each(tasks.size(), [&](std::size_t task) {
      context_.state().cancel.check();
      auto& [members, rest] = tasks[task];
      for (std::size_t i = task * rows_per_task; i < std::min(rows.rows(), (task + 1) * rows_per_task); ++i) {
        const auto home = static_cast<std::size_t>(found.ids(i, 0));
        const float own = found.distances(i, 0);
        const float limit = reach_.limit(own, farthest_[home]);
        // The first partition has no earlier one, so that nothing is copied. It is the home of zero vectors,
        // which for cosine are at the same distance from all partitions.
        if (!is_all && home != 0 && found.distances(i, nearest - 1) <= limit) {
          rest.push_back(static_cast<std::uint32_t>(i));
          continue;
        }
        members.emplace_back(home, false, numbers[i]);
        for (std::size_t j = 1; j < nearest && found.distances(i, j) <= limit; ++j) {
          const auto other = static_cast<std::size_t>(found.ids(i, j));
          if (other < home && reach_.reaches(own, found.distances(i, j), between(home, other)))
            members.emplace_back(other, true, numbers[i]);
        }
      }
    });
    for (const TaskMembers& task : tasks) {
      if (!task.members.empty()) take(task.members);
      incomplete.insert(incomplete.end(), task.incomplete.begin(), task.incomplete.end());
    }
  }
  const std::size_t more = std::min(growth * nearest, centroids_.rows());
  const std::size_t most = std::max<std::size_t>(1, piece_ / more);
  for (std::size_t first = 0; first < incomplete.size(); first += most) {
    const auto piece = std::span(incomplete).subspan(first, std::min(most, incomplete.size() - first));
    const GatheredRows gathered(context_, rows, piece);
    std::vector<std::uint32_t> own;
    for (const std::uint32_t place : piece) own.push_back(numbers[place]);
    search_nearest(gathered.view(), own, more, take);
  }
}

}  // namespace nearwise::plan
