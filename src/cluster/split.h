// Clusters with too few rows are given up, and their centroids placed where the error is largest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise::cluster {

struct SplitArgs {
  RowsView rows;
  Metric metric = Metric::sqeuclidean;
  std::size_t least_rows = 1;              // a cluster with fewer is given up
  std::span<const std::uint32_t> members;  // [rows] row numbers by cluster
  std::span<const std::uint64_t> ends;     // [clusters] where the members of each end
  std::span<const double> errors;          // [clusters]
  std::uint64_t round = 0;                 // the iteration, for the random numbers
  MatrixView<float> centroids;             // [clusters, dim] moved in place
};

// Bytes on the budget, at the most.
std::uint64_t split_bytes(const Context& context, std::size_t clusters, std::size_t dim);

// Every cluster that is given up takes a member of the cluster with the largest error per centroid as its new centroid,
// drawn with a probability proportional to its squared distance from its own. That centroid stays where it is: where
// only empty clusters are given up, no row gets a farther centroid. Returns how many were moved.
std::size_t split_clusters(const Context& context, const SplitArgs& args);

}  // namespace nearwise::cluster
