// Overlapping partitions of all rows in memory, as groups of rows to compare.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/ops.h"
#include "core/memory.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise::graph {

struct PartitionOptions {
  std::size_t partitions = 1;
  std::size_t overlap = 1;  // nearest partitions that a row belongs to
  Metric metric = Metric::sqeuclidean;
  std::uint64_t attempt = 0;  // selects other random centroids
};

class Partitions {
 public:
  Partitions(const Context& context, const RowsView& rows, const PartitionOptions& options);

  // Expected duration for shares of progress, in pairs of exact search.
  static double cost(const RowsView& rows, const PartitionOptions& options);
  // Upper bound on the budget.
  static std::uint64_t bytes(const Context& context, const RowsView& rows, const PartitionOptions& options);

  std::size_t overlap() const { return kept_; }
  // The partitions of a row, nearest first.
  std::span<const std::uint32_t> of_row(std::size_t row) const {
    return of_row_.span().subspan(row * overlap_, overlap_);
  }
  // Reduces the overlap. Before groups().
  void keep(std::size_t overlap);
  // Orders rows by their nearest partition, so that compared rows are close in memory. Before groups().
  void order_rows(std::span<std::uint32_t> order);
  // The partitions as groups of places, cut at max_partition_rows; order [rows]: the row at each place. Once.
  Groups groups(std::span<const std::uint32_t> order);
  // As groups(), but only rows below left_rows are compared with the others.
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
