// k-means clustering by Lloyd's iterations with exact assignment.
//
// Rows are assigned to the centroid that knn with k = 1 finds; no distance matrix is stored. The same rows,
// options and seed give the same bytes at any number of threads, any memory limit and on every instruction
// set.
//
// metric          rows                 centroid
// sqeuclidean     as given             mean of its members
// inner_product   as given             sum of its members, normalized (spherical k-means)
// cosine          normalized           sum of its members, normalized (spherical k-means)
//
// The error is the sum of squared distances of the rows, taken as in the table, to their centroids, in f64.
// It falls in every iteration, up to the rounding of centroids to f32, unless cluster sizes are bounded
// (`balance`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/export.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

enum class Seeding : std::uint8_t {
  plus_plus,  // k-means++ on a sample
  random,     // uniformly drawn rows
};

struct KMeansOptions {
  Metric metric = Metric::sqeuclidean;  // or inner_product, cosine
  std::size_t iterations = 20;          // upper bound
  // Converged when an iteration lowers the error by at most this share. 0: when the error no longer falls.
  double tolerance = 1e-4;
  Seeding seeding = Seeding::plus_plus;
  // Initial centroids [clusters, dim] on the host, normalized for spherical metrics. Empty: by `seeding` with
  // the context's seed.
  RowsView initial = {};
  // After each iteration the centroid of a smaller cluster moves to a row of the cluster with the largest
  // error. 1: only empty clusters move, which never raises the error.
  std::size_t min_cluster_size = 1;
  // At least 1: no cluster has more than ceil(balance * rows / clusters) rows; rows whose nearest cluster is
  // full go to the nearest one with room. nullopt: sizes are not bounded.
  std::optional<double> balance = {};
  // Mini-batch k-means for files larger than memory: every iteration reads about this many rows, in short
  // blocks from the whole file, and moves each centroid towards their mean by a step that falls with the rows
  // it has seen. nullopt, or at least the number of rows: every iteration uses all rows.
  std::optional<std::size_t> batch_size = {};
};

struct KMeans {
  Matrix<float> centroids;  // [clusters, dim]
  // [clusters] rows in each centroid's mean; 0 if the centroid was moved instead. Mini-batches: summed over
  // all batches.
  std::vector<std::size_t> sizes;
  // The error of each iteration's assignment, before centroids move. Mini-batches: scaled from the batch to
  // all rows.
  std::vector<double> errors;
  bool converged = false;  // mini-batches: by the means of five errors
};

// Throws Error(invalid_argument) if there are more clusters than rows, or naming the first row read that has
// NaN or infinity. Some clusters stay empty if there are fewer distinct rows than clusters.
KMeans train_kmeans(const Context& context, RowsView rows, std::size_t clusters,
                    const KMeansOptions& options = {});

// Two levels, for very many clusters: sqrt(clusters) first, each then split in proportion to its rows. Takes
// about 2 / sqrt(clusters) of the time at a slightly larger error. `errors` has one entry, the sum over all
// parts; `initial` must be empty, `balance` and `batch_size` unset.
KMeans train_hierarchical_kmeans(const Context& context, RowsView rows, std::size_t clusters,
                                 const KMeansOptions& options = {});

struct AssignOptions {
  Metric metric = Metric::sqeuclidean;
  // At least 1: no centroid gets more than ceil(balance * rows / centroids) rows. nullopt: not bounded.
  std::optional<double> balance = {};
};

// The nearest centroid of every row and its distance, [rows, 1], as knn with k = 1 returns. With `balance`,
// in rounds: each unassigned row proposes to its nearest centroid with room, which accepts the nearest
// proposals (ties: the lower row number) until it is full. Then at most 2^32 - 1 rows, in host memory.
Neighbors assign(const Context& context, RowsView rows, RowsView centroids,
                 const AssignOptions& options = {});

}  // namespace nearwise
