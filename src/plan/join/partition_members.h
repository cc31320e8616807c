// Which partitions the vectors of a join belong to: each to its home, and as a copy to the earlier ones
// within reach (plan/join/partition_reach.h).
//
// Of a pair whose vectors are at home in two partitions, the one of the later home is copied into the earlier
// one, and not the other way round: the pair is found once, in the earlier of the two.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "plan/join/partition_reach.h"

namespace nearwise::plan {

// In order: partition by partition, the vectors at home before the copies, by row.
struct PartitionMember {
  std::uint64_t bits;

  PartitionMember(std::size_t partition, bool is_copy, std::uint32_t row)
      : bits(std::uint64_t{2 * partition + (is_copy ? 1U : 0U)} << 32 | row) {}
  std::uint32_t row() const { return static_cast<std::uint32_t>(bits); }
  std::size_t place() const { return bits >> 32; }  // 2 * partition, plus 1 of a copy
  std::size_t partition() const { return place() / 2; }
  bool is_copy() const { return place() % 2 != 0; }
  auto operator<=>(const PartitionMember&) const = default;
};

class MemberSearch {
 public:
  // centroids: distinct; they and `reach` must outlive it. piece: answers in memory at a time, about.
  // between [centroids, centroids]: of reach.between() with earlier ones; or none, to compute it when needed.
  MemberSearch(const Context& context, MatrixView<const float> centroids, const PartitionReach& reach,
               std::size_t piece, MatrixView<const float> between = {});

  // At most `piece`, or the partitions of a single row if these are more.
  using Take = std::function<void(std::span<const PartitionMember>)>;
  // Rows are numbered from first_row on. The same calls at any number of threads.
  void search(const RowsView& rows, std::size_t first_row, const Take& take) const;

 private:
  float between(std::size_t home, std::size_t earlier) const {
    return between_.rows() != 0 ? between_(home, earlier)
                                : reach_.between(centroids_.row(home), centroids_.row(earlier));
  }
  // Row i is numbers[i]. nearest: partitions compared with; rows that may be within reach of more follow.
  void search_nearest(const RowsView& rows, std::span<const std::uint32_t> numbers, std::size_t nearest,
                      const Take& take) const;

  const Context context_;
  const MatrixView<const float> centroids_;
  const PartitionReach& reach_;
  const std::size_t piece_;
  const MatrixView<const float> between_;
  std::vector<float> farthest_;  // [centroids] `between` of an earlier one, at most
};

}  // namespace nearwise::plan
