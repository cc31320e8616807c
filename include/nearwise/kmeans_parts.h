// The steps of train_kmeans, for data in blocks on several processes or machines: centroids are sent to the
// blocks, sums come back.
//
//   centroids = seed_kmeans(rows, clusters)
//   each iteration:
//     sums      = sum of sum_clusters(block, centroids) over all blocks
//     moved     = move_centroids(sums, centroids)
//     if a cluster is empty, and this was not the last iteration:
//       splits  = choose_splits(sums)
//       drawn   = draw_split_rows(block, centroids, moved, splits) of all blocks
//       the earliest drawn rows become the centroids of the empty clusters
//     centroids = moved
//
// One block gives the bytes of train_kmeans. With several, the bytes depend on the blocks and the order of
// the sums, but not on thread count, memory limit or instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/export.h"
#include "nearwise/kmeans.h"
#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

// The initial centroids of train_kmeans, [clusters, dim]. Reads a sample of 32 vectors per cluster; uses only
// the options metric, seeding and initial. Throws Error(invalid_argument) as train_kmeans does.
Matrix<float> seed_kmeans(const Context& context, RowsView rows, std::size_t clusters,
                          const KMeansOptions& options = {});

struct KMeansBlock {
  RowsView rows;                // at most 2^32 - 2, on the host
  std::uint64_t first_row = 0;  // of the block, in the whole data set
  Metric metric = Metric::sqeuclidean;
};

// Sums over vectors, normalized as the metric requires (kmeans.h).
struct ClusterSums {
  Matrix<double> sums;               // [clusters, dim]
  std::vector<std::uint64_t> sizes;  // [clusters]
  std::vector<double> errors;        // [clusters] sums of squared distances from the centroid
};

// Assigns the vectors of a block to their nearest centroids and sums them by centroid.
ClusterSums sum_clusters(const Context& context, const KMeansBlock& block, MatrixView<const float> centroids);

// The new centroids from the sums of all blocks. Centroids of empty clusters stay where they are.
Matrix<float> move_centroids(const ClusterSums& sums, MatrixView<const float> centroids, Metric metric);

// A cluster with a large error, from which rows are drawn as centroids of empty clusters.
struct ClusterSplit {
  std::size_t cluster = 0;
  std::size_t rows = 0;  // rows to draw
};
// Ascending by cluster; empty if no cluster is empty.
std::vector<ClusterSplit> choose_splits(const ClusterSums& sums);

// Rows are drawn by exponential race: the rate of a row is its squared distance from the new centroid of its
// cluster, and the earliest rows win.
struct SplitRow {
  std::size_t cluster = 0;
  double time = 0;
  std::uint64_t row = 0;  // in the whole data set
};
// The earliest rows of this block for every split, by time, then by row number. assigned: the centroids used
// for the sums; moved: the new ones; iteration counts from 0. The earliest rows of all blocks, in ascending
// order of split and time, become the centroids of the empty clusters in ascending order.
std::vector<SplitRow> draw_split_rows(const Context& context, const KMeansBlock& block,
                                      MatrixView<const float> assigned, MatrixView<const float> moved,
                                      std::span<const ClusterSplit> splits, std::uint64_t iteration);

}  // namespace nearwise
