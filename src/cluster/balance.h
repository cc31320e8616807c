// Clusters of bounded size: a row whose cluster is full goes to the nearest one with room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise::cluster {

// max(balance * rows / clusters, ceil(rows / clusters)), rounded down: the clusters have room for all rows.
std::size_t max_cluster_rows(std::size_t rows, std::size_t clusters, double balance);

struct BalanceArgs {
  RowsView rows;
  RowsView centroids;
  Metric metric = Metric::sqeuclidean;
  std::size_t max_rows = 0;          // of a cluster; clusters * max_rows >= rows
  std::span<std::uint32_t> nearest;  // [rows] in: the nearest centroid; out: the assigned one
  std::span<float> distances;        // [rows] the reported distance from it
  std::span<std::uint32_t> scratch;  // [rows]
};

// Minimum budget in bytes.
std::uint64_t balance_bytes(const Context& context, const RowsView& rows, std::size_t clusters,
                            ElementType centroid_type, Metric metric);

// The rounds of assign() with `balance` (nearwise/kmeans.h). From the second round on, centroids with equal
// bits are filled one after the other. A cluster that refuses is full, so that there are at most as many
// rounds as distinct centroids plus one.
void balance_clusters(const Context& context, const BalanceArgs& args);

}  // namespace nearwise::cluster
