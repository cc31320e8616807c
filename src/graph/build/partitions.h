// Overlapping partitions: groups of rows that are near the same k-means centroid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/ops.h"
#include "core/memory.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise::graph {

struct PartitionOptions {
  std::size_t partitions = 1;
  std::size_t overlap = 1;  // partitions that a row is in: those of its nearest centroids
  Metric metric = Metric::sqeuclidean;
  std::uint64_t attempt = 0;  // each has other centroids
};

// Pairs of a partition grow with the square of its members: larger ones are cut.
inline constexpr std::size_t max_partition_rows = 8192;

// The partitions of each row, and their members by place once an order is known.
class Partitions {
 public:
  Partitions(const Context& context, const RowsView& rows, const PartitionOptions& options);

  // Bytes on the budget, at the most.
  static std::uint64_t bytes(const Context& context, const RowsView& rows, const PartitionOptions& options);

  std::size_t overlap() const { return kept_; }
  // Whether two rows share one of their `nearest` nearest partitions.
  bool share(std::size_t row, std::size_t other, std::size_t nearest) const;
  // From here on a row is in as many partitions only. Before groups().
  void keep(std::size_t nearest);
  // The rows ordered by their first partition: rows that meet lie together. Before groups().
  void order_rows(std::span<std::uint32_t> order);
  // The partitions as groups of places, where order [rows] has the row at each place. Once.
  Groups groups(std::span<const std::uint32_t> order);
  // The same, and in each group those of rows below left_rows stand first and are apart from the others.
  Groups groups_of_sides(std::span<const std::uint32_t> order, std::size_t left_rows);

 private:
  std::size_t partitions_;
  std::size_t overlap_;
  std::size_t kept_;
  std::size_t rows_;
  Buffer<std::uint32_t> of_row_;   // [rows, overlap] nearest first
  Buffer<std::uint32_t> members_;  // [rows * kept]
  std::vector<std::uint64_t> ends_;
  std::vector<std::uint32_t> new_counts_;
};

}  // namespace nearwise::graph
