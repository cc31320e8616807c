// Moves the centroids of clusters with too few rows to the clusters with the largest errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise::cluster {

// A cluster that receives further centroids, and how many it will have.
struct Donor {
  double error = 0;  // per centroid
  std::size_t cluster = 0;
  std::size_t centroids = 1;
};

// The clusters that are split, ascending, one further centroid for each cluster smaller than
// min_cluster_size.
std::vector<Donor> choose_donors(std::span<const std::uint64_t> ends, std::span<const double> errors,
                                 std::size_t min_cluster_size);

struct SplitArgs {
  RowsView rows;
  Metric metric = Metric::sqeuclidean;
  std::size_t min_cluster_size = 1;        // the centroid of a smaller cluster is moved
  std::span<const std::uint32_t> members;  // [rows] row numbers by cluster
  std::span<const std::uint64_t> ends;     // [clusters] end of each in members
  std::span<const double> errors;          // [clusters]
  std::uint64_t round = 0;                 // selects the random numbers
  MatrixView<float> centroids;             // [clusters, dim] moved in place
};

// Arrival time in the race for a further centroid, and the row number in the whole data set.
using Drawn = std::pair<double, std::uint64_t>;

struct RaceArgs {
  RowsView rows;                // all rows or a block
  std::uint64_t first_row = 0;  // row number of the first one in the whole data set
  Metric metric = Metric::sqeuclidean;
  std::span<const std::uint32_t> members;  // [rows] row numbers by cluster
  std::span<const std::uint64_t> ends;     // [clusters] end of each in members
  std::uint64_t round = 0;                 // selects the random numbers
  MatrixView<const float> centroids;       // [clusters, dim] current centroids
};

// The earliest members of a donor, one per further centroid; fewer if other members coincide with the
// centroid.
std::vector<Drawn> draw_members(const Context& context, const RaceArgs& args, const Donor& donor);

// Upper bound on the budget.
std::uint64_t split_bytes(const Context& context, std::size_t clusters, std::size_t dim);

// Each moved centroid becomes a member of the cluster with the largest error per centroid, drawn with
// probability proportional to its squared distance from that cluster's centroid, which stays. If only empty
// clusters are moved, no row gets a farther centroid. Returns the number of moved centroids.
std::size_t split_clusters(const Context& context, const SplitArgs& args);

}  // namespace nearwise::cluster
