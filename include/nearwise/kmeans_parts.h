// k-means in parts: the steps of train_kmeans, cut so that every block of the rows can be looked at elsewhere, by other
// processes or machines. Centroids go to the blocks, and sums of their size come back.
//
//   centroids = seed_kmeans(rows, clusters)
//   each iteration:
//     sums      = sum_clusters(block, centroids), of all blocks, added
//     moved     = move_centroids(sums, centroids)
//     where a cluster is empty, and this was not the last iteration:
//       splits  = choose_splits(sums)
//       drawn   = draw_split_rows(block, centroids, moved, splits), of all blocks: the earliest become the empty centroids
//     centroids = moved
//
// One block gives the bytes of train_kmeans. Several give those that belong to the cut, and to the order in which their
// sums are added, whatever the number of threads, the memory limit and the instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/kmeans.h"
#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace nearwise {

// Where train_kmeans starts, [clusters, dim]. Reads no more of the rows than a sample, 32 for each cluster. Of the options
// it takes metric, seeding and initial. Throws Error(invalid_argument) as train_kmeans does.
Matrix<float> seed_kmeans(const Context& context, RowsView rows, std::size_t clusters,
                          const KMeansOptions& options = {});

struct KMeansBlock {
  RowsView rows;                // at most 2^32 - 1, on the host
  std::uint64_t first_row = 0;  // the number of the first of them, among the rows of all blocks
  Metric metric = Metric::sqeuclidean;
};

// Of rows as the metric takes them (nearwise/kmeans.h).
struct ClusterSums {
  Matrix<double> sums;               // [clusters, dim]
  std::vector<std::uint64_t> sizes;  // [clusters]
  std::vector<double> errors;        // [clusters] sums of squared distances from the centroid
};

// Assigns the rows of a block to their nearest centroids, and sums them.
ClusterSums sum_clusters(const Context& context, const KMeansBlock& block, MatrixView<const float> centroids);

// The centroids that the sums of all blocks give. Where there is nothing to take a mean of they stay where they are.
Matrix<float> move_centroids(const ClusterSums& sums, MatrixView<const float> centroids, Metric metric);

// A cluster with a large error, which rows are drawn from to be centroids of those without rows.
struct ClusterSplit {
  std::size_t cluster = 0;
  std::size_t rows = 0;  // to be drawn
};
// Ascending by cluster; none where no cluster is empty.
std::vector<ClusterSplit> choose_splits(const ClusterSums& sums);

// Rows are drawn by a race, which more distant rows are more likely to win.
struct SplitRow {
  std::size_t cluster = 0;
  double time = 0;
  std::uint64_t row = 0;  // among those of all blocks
};
// Of every split the rows of this block that come first, by time and then by number; `assigned` are the centroids that
// sums were taken with, `moved` those that they gave, iteration counts from 0. Of all blocks' rows of a split those become
// centroids that come first, in ascending order of split and time for the empty clusters in ascending order.
std::vector<SplitRow> draw_split_rows(const Context& context, const KMeansBlock& block,
                                      MatrixView<const float> assigned, MatrixView<const float> moved,
                                      std::span<const ClusterSplit> splits, std::uint64_t iteration);

}  // namespace nearwise
