// k-means clustering by Lloyd's iterations with exact assignment.
//
// Vectors are assigned to the centroid that knn with k = 1 finds; no distance matrix is stored. The same
// vectors, options and seed give the same bytes at any thread count and memory limit and on every instruction
// set.
//
// metric          vectors              centroid
// sqeuclidean     as given             mean of its members
// inner_product   as given             sum of its members, normalized (spherical k-means)
// cosine          normalized           sum of its members, normalized (spherical k-means)
//
// The error is the f64 sum of squared distances of the vectors, as in the table, to their centroids. It
// decreases in every iteration, up to the rounding of centroids to f32, unless `balance` bounds cluster
// sizes.
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
  // Converged when an iteration lowers the error by at most this fraction. 0: when it no longer decreases.
  double tolerance = 1e-4;
  Seeding seeding = Seeding::plus_plus;
  // Initial centroids [clusters, dim] on the host, normalized for spherical metrics. Empty: by `seeding` with
  // the context's seed.
  RowsView initial = {};
  // After each iteration but the last, centroids of smaller clusters move to vectors of clusters with large
  // errors. 1 to rows / clusters; 1: only those of empty clusters move, which never raises the error.
  std::size_t min_cluster_size = 1;
  // At least 1: no cluster has more than ceil(balance * rows / clusters) vectors; a vector whose nearest
  // cluster is full goes to the nearest one with room. nullopt: not bounded.
  std::optional<double> balance = {};
  // Mini-batch k-means for files larger than memory: every iteration reads about this many vectors, in short
  // blocks from the whole file, and moves each centroid towards their mean by a step that decreases with the
  // number of vectors it has seen. nullopt, or at least the number of rows: every iteration uses all vectors.
  // At least the number of clusters; not with `balance` or a min_cluster_size above 1.
  std::optional<std::size_t> batch_size = {};
};

struct KMeans {
  Matrix<float> centroids;  // [clusters, dim]
  // [clusters] vectors averaged into each centroid; 0 for an empty cluster, whose centroid stays.
  // Mini-batches: summed over all batches.
  std::vector<std::size_t> sizes;
  // The error of each iteration's assignment, before centroids move. Mini-batches: scaled from the batch to
  // all rows.
  std::vector<double> errors;
  bool converged = false;  // mini-batches: judged by the mean error of five iterations
};

// Rows are on the host; an iteration uses at most 2^32 - 2 of them. Throws Error(invalid_argument) if there
// are more clusters than rows, or naming the first row read that has NaN or infinity. Some clusters stay
// empty if there are fewer distinct rows than clusters.
KMeans train_kmeans(const Context& context, RowsView rows, std::size_t clusters,
                    const KMeansOptions& options = {});

// Two levels, for very many clusters: sqrt(clusters) clusters, each then split in proportion to its size.
// Takes about 2 / sqrt(clusters) of the time at a slightly larger error. `errors` has one entry, the sum over
// all parts; `initial` must be empty, `balance` and `batch_size` unset.
KMeans train_hierarchical_kmeans(const Context& context, RowsView rows, std::size_t clusters,
                                 const KMeansOptions& options = {});

struct AssignOptions {
  Metric metric = Metric::sqeuclidean;
  // At least 1: no centroid gets more than ceil(balance * rows / centroids) vectors. nullopt: not bounded.
  std::optional<double> balance = {};
};

// Each vector's nearest centroid and its distance, [rows, 1], as knn with k = 1. With `balance`, in rounds:
// each unassigned vector proposes to its nearest centroid with room, which accepts the nearest proposals
// (ties by lower row number) until it is full. `balance` requires at most 2^32 - 2 rows and centroids, in
// host memory.
Neighbors assign(const Context& context, RowsView rows, RowsView centroids,
                 const AssignOptions& options = {});

}  // namespace nearwise
