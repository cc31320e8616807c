// k-means: centroids that make the squared distances of rows to their nearest centroid small.
//
// Lloyd's iterations on exact search: rows are assigned to the centroid that knn with k = 1 finds, no distance matrix is
// stored, no row is left out. The same rows, options and seed give the same bytes at any number of threads, any memory
// limit and on every instruction set.
//
// metric          rows as              centroid of its members
// sqeuclidean     given                their mean
// inner_product   given                their sum, scaled to length 1 (spherical k-means)
// cosine          scaled to length 1   their sum, scaled to length 1 (spherical k-means)
//
// The error is the sum over all rows, so taken, of the squared distance to their centroid, in f64. It falls from iteration to
// iteration, up to the rounding of centroids to f32; not where the size of clusters is bounded (`balance`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/types.h"

namespace nearwise {

enum class Seeding : std::uint8_t {
  plus_plus,  // rows of a sample, drawn with a probability proportional to their squared distance from those drawn before
  random,  // rows drawn from all alike
};

struct KMeansOptions {
  Metric metric = Metric::sqeuclidean;  // or inner_product, cosine
  std::size_t iterations = 20;          // at most
  // Converged when an iteration lowers the error by no more than this share of it. 0: when it falls no further.
  double tolerance = 1e-4;
  Seeding seeding = Seeding::plus_plus;
  // Centroids to start from, [clusters, dim], on the host; scaled to length 1 where centroids are. Empty: by `seeding`,
  // with the context's seed.
  RowsView initial = {};
  // Between iterations a cluster of fewer rows is given up, and its centroid moved to a row of the cluster with the largest
  // error. 1: only empty clusters, which never raises the error.
  std::size_t min_cluster_size = 1;
  // At least 1: no cluster has more than this many times rows / clusters, in whole numbers, but no less than lets all rows
  // in. Rows that find theirs full go to the nearest that has room, in every iteration. 0: as many as are nearest.
  double balance = 0;
  // Mini-batches, for files far beyond memory: every iteration looks at about so many rows, in short blocks from all over the
  // rows, and moves each centroid towards the mean of those it is given, the less the more it has been given before. Working
  // memory then depends on the batch, not on the rows. 0, or no fewer than there are: all rows, in every iteration.
  std::size_t batch_size = 0;
};

struct KMeans {
  Matrix<float> centroids;  // [clusters, dim]
  // [clusters] rows that the centroid was made of; 0 where it was moved instead. Mini-batches: of all of them together.
  std::vector<std::size_t> sizes;
  // Of every iteration: of its assignment, before the centroids are moved. Mini-batches: that of the batch, times rows by
  // rows of the batch; converged compares means of five.
  std::vector<double> errors;
  bool converged = false;
};

// Throws Error(invalid_argument) where there are more clusters than rows, and names the first row with NaN or infinity (of
// those looked at, where there are mini-batches).
// Where rows have fewer distinct values than there are clusters, some clusters stay empty.
KMeans train_kmeans(const Context& context, RowsView rows, std::size_t clusters,
                    const KMeansOptions& options = {});

// For very many clusters: about sqrt(clusters) of them first, each of which is then cut into its share, by the number of its
// rows, with the same options. Takes about 2 / sqrt(clusters) of the time, at a somewhat larger error. `errors` has one
// entry, the sum over all parts; `initial` must be empty, `balance` and `batch_size` 0.
KMeans train_hierarchical_kmeans(const Context& context, RowsView rows, std::size_t clusters,
                                 const KMeansOptions& options = {});

struct AssignOptions {
  Metric metric = Metric::sqeuclidean;
  // At least 1: no centroid gets more than this many times rows / centroids, in whole numbers, but no less than lets all
  // rows in. 0: as many as are nearest.
  double balance = 0;
};

// The nearest centroid of every row and its distance, [rows, 1]: what knn with k = 1 returns. With `balance`, in rounds:
// every row asks the nearest centroid with room left, which takes the nearest of those that ask (ties: the lower number)
// until it is full; the others ask again. Takes at most 2^32 - 1 rows then, in host memory.
Neighbors assign(const Context& context, RowsView rows, RowsView centroids,
                 const AssignOptions& options = {});

}  // namespace nearwise
