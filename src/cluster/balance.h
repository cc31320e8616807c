// Clusters of bounded size: rows that find their cluster full go to the nearest that has room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise::cluster {

// The most rows that a cluster may have: `balance` times its share of the rows, but never less than lets all rows in.
std::size_t max_cluster_rows(std::size_t rows, std::size_t clusters, double balance);

struct BalanceArgs {
  RowsView rows;
  RowsView centroids;
  Metric metric = Metric::sqeuclidean;
  std::size_t max_rows = 0;          // of a cluster; all of them together have room for all rows
  std::span<std::uint32_t> nearest;  // [rows] the nearest centroid of each; out: that of its cluster
  std::span<float> distances;        // [rows] from it, as reported; out: likewise
  std::span<std::uint32_t> scratch;  // [rows]
};

// Bytes on the budget, at the least.
std::uint64_t balance_bytes(const Context& context, const RowsView& rows, std::size_t clusters,
                            ElementType centroid_type, Metric metric);

// In rounds. Every row without a cluster asks the nearest centroid that has room left, the lower one in a tie. A cluster takes
// the nearest of those that ask, the lower row in a tie, until it is full; who was taken stays. The others ask again in
// the next round. From the second round on, centroids of the same bits are filled in turn, as one. A cluster that
// refused has no more room: there are at most as many rounds as distinct centroids, and one, and as a rule a handful.
void balance_clusters(const Context& context, const BalanceArgs& args);

}  // namespace nearwise::cluster
