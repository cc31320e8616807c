// Where there are many partitions: super-partitions of them, so that a row is compared with those near its super-partition and no others.
//
// Rows of one super-partition are compared with the same partitions, which is exact search of many rows among few. In an inverted file of the
// partitions every row looks at lists of its own, and every task would make it again: 10M rows among 40,000 partitions took 53 s that way and
// 40 s this way, vectors written besides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise::plan {

// None: rows are compared with all partitions.
struct SuperPartitionsView {
  MatrixView<const float> centres;             // [super-partitions, dim]
  MatrixView<const std::uint64_t> ends;        // [super-partitions, 1] in partitions
  MatrixView<const std::uint32_t> partitions;  // [all, 1] those near a super-partition, at least one

  std::size_t size() const { return centres.rows(); }
  std::span<const std::uint32_t> partitions_of(std::size_t super_partition) const {
    const std::uint64_t begin = super_partition == 0 ? 0 : ends(super_partition - 1, 0);
    return {partitions.data() + begin, static_cast<std::size_t>(ends(super_partition, 0) - begin)};
  }
};

struct SuperPartitions {
  Matrix<float> centres;
  std::vector<std::uint64_t> ends;
  std::vector<std::uint32_t> partitions;

  SuperPartitionsView view() const {
    return {centres, {ends.data(), ends.size(), 1}, {partitions.data(), partitions.size(), 1}};
  }

  // At the most, of so many partitions.
  static std::size_t max_super_partitions(std::size_t partitions);
  // Super-partitions that a partition is near, and partitions that are near a super-partition.
  static constexpr std::size_t max_share_of_partition = 32;
  static std::size_t max_near(std::size_t partitions);
  // Bytes on the budget while they are made, beside the sample.
  static std::uint64_t bytes(const Context& context, std::size_t partitions, std::size_t dim,
                             std::size_t overlap);

  // A partition is near so many super-partitions as it takes to find nearly all of the `overlap` nearest partitions of each row of the sample.
  static SuperPartitions make(const Context& context, MatrixView<const float> centroids,
                              const RowsView& sample, std::size_t overlap, Metric metric);
};

}  // namespace nearwise::plan
