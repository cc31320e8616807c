// Clusters with too few rows are given up, and their centroids placed where the error is largest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise::cluster {

// A cluster and how many centroids it will have.
struct Donor {
  double error = 0;  // per centroid
  std::size_t cluster = 0;
  std::size_t centroids = 1;
};

// Who gives centroids to the clusters of fewer than min_cluster_size; as many as can be placed. In order of clusters.
std::vector<Donor> choose_donors(std::span<const std::uint64_t> ends, std::span<const double> errors,
                                 std::size_t min_cluster_size);

struct SplitArgs {
  RowsView rows;
  Metric metric = Metric::sqeuclidean;
  std::size_t min_cluster_size = 1;        // a cluster with fewer is given up
  std::span<const std::uint32_t> members;  // [rows] row numbers by cluster
  std::span<const std::uint64_t> ends;     // [clusters] where the members of each end
  std::span<const double> errors;          // [clusters]
  std::uint64_t round = 0;                 // the iteration, for the random numbers
  MatrixView<float> centroids;             // [clusters, dim] moved in place
};

// When a row comes in the race for its cluster's further centroids, and its number among those of all blocks.
using Drawn = std::pair<double, std::uint64_t>;

struct RaceArgs {
  RowsView rows;                // all of them, or a block
  std::uint64_t first_row = 0;  // the number of the first of them, among all
  Metric metric = Metric::sqeuclidean;
  std::span<const std::uint32_t> members;  // [rows] row numbers by cluster
  std::span<const std::uint64_t> ends;     // [clusters] where the members of each end
  std::uint64_t round = 0;                 // the iteration, for the random numbers
  MatrixView<const float> centroids;       // [clusters, dim] from which the rows are so far
};

// The members of a donor that come first, one for each further centroid, where so many are not at the centroid already.
std::vector<Drawn> draw_members(const Context& context, const RaceArgs& args, const Donor& donor);

// Bytes on the budget, at the most.
std::uint64_t split_bytes(const Context& context, std::size_t clusters, std::size_t dim);

// Every cluster that is given up takes a member of the cluster with the largest error per centroid as its new centroid,
// drawn with a probability proportional to its squared distance from its own. That centroid stays where it is: where
// only empty clusters are given up, no row gets a farther centroid. Returns how many were moved.
std::size_t split_clusters(const Context& context, const SplitArgs& args);

}  // namespace nearwise::cluster
