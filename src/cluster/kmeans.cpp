// train_kmeans and assign: argument and memory checks.
#include "nearwise/kmeans.h"

#include <algorithm>
#include <vector>

#include "cluster/balance.h"
#include "cluster/centroid_search.h"
#include "cluster/hierarchy.h"
#include "cluster/kmeans_arguments.h"
#include "cluster/mini_batch.h"
#include "cluster/training.h"
#include "core/checked.h"
#include "core/float_environment.h"
#include "ops/check_rows.h"
#include "ops/exact_knn.h"
#include "ops/finite_rows.h"
#include "ops/memory_limit.h"

namespace nearwise {
namespace {

using cluster::CentroidSearch;

bool has_batches(const RowsView& rows, const KMeansOptions& options) {
  return options.batch_size && *options.batch_size < rows.rows();
}

void check_balance(const char* operation, std::optional<double> balance) {
  require(!balance || *balance >= 1, "{}: balance must be at least 1, got {}", operation,
          balance.value_or(0));
}

}  // namespace

void cluster::check_arguments(const char* operation, const Context& context, const RowsView& rows,
                              std::size_t clusters, const KMeansOptions& options) {
  check_rows(operation, context, rows, rows);
  require(rows.place().kind == DeviceKind::cpu, "{}: rows must be on the host, got rows on {}", operation,
          name(rows.place()));
  require(clusters >= 1, "{}: there must be at least 1 cluster, got 0", operation);
  require(clusters <= rows.rows(),
          "{}: there must be at most as many clusters as rows, got {} clusters and {} rows", operation,
          clusters, rows.rows());
  const std::size_t looked_at = has_batches(rows, options) ? *options.batch_size : rows.rows();
  require(looked_at <= max_shard_rows,
          "{}: rows of an iteration must be at most {}, got {}: set batch_size, or use a sample", operation,
          max_shard_rows, looked_at);
  if (has_batches(rows, options)) {
    require(*options.batch_size >= clusters,
            "{}: batch_size must be at least the number of clusters, {}, got {}", operation, clusters,
            *options.batch_size);
    require(!options.balance, "{}: batch_size and balance cannot be combined", operation);
    require(options.min_cluster_size == 1, "{}: with batch_size, min_cluster_size must be 1, got {}",
            operation, options.min_cluster_size);
  }
  require(options.metric != Metric::euclidean,
          "{}: the metric must be sqeuclidean, inner_product or cosine, got euclidean (k-means "
          "minimises squared distances)",
          operation);
  require(options.iterations >= 1, "{}: there must be at least 1 iteration, got 0", operation);
  require(options.tolerance >= 0, "{}: the tolerance must not be negative, got {}", operation,
          options.tolerance);
  require(options.min_cluster_size >= 1 && options.min_cluster_size <= rows.rows() / clusters,
          "{}: min_cluster_size must be 1 to {} for {} rows in {} clusters, got {}", operation,
          rows.rows() / clusters, rows.rows(), clusters, options.min_cluster_size);
  check_balance(operation, options.balance);
  const RowsView& initial = options.initial;
  if (initial.rows() == 0) return;
  require(initial.rows() == clusters && initial.dim() == rows.dim(),
          "{}: the initial centroids must be [{}, {}], got [{}, {}]", operation, clusters, rows.dim(),
          initial.rows(), initial.dim());
  check_rows(operation, context, initial, initial);
  require(initial.place().kind == DeviceKind::cpu, "{}: the initial centroids must be on the host",
          operation);
}

KMeans train_kmeans(const Context& context, RowsView rows, std::size_t clusters,
                    const KMeansOptions& options) {
  cluster::check_arguments("train_kmeans", context, rows, clusters, options);
  const DefaultFloatEnvironment environment;  // bounds are computed on this thread too
  context.state().cancel.check();
  const bool batches = has_batches(rows, options);
  check_memory("train_kmeans", context,
               batches ? cluster::mini_batch_bytes(context, rows, clusters, options)
                       : cluster::training_bytes(context, rows, clusters, options));
  if (!batches) check_finite("train_kmeans", context, rows);
  check_finite("train_kmeans", context, options.initial, 0, "initial centroid");
  return batches ? cluster::train_mini_batches(context, rows, clusters, options)
                 : cluster::train(context, rows, clusters, options);
}

KMeans train_hierarchical_kmeans(const Context& context, RowsView rows, std::size_t clusters,
                                 const KMeansOptions& options) {
  cluster::check_arguments("train_hierarchical_kmeans", context, rows, clusters, options);
  require(options.initial.rows() == 0, "train_hierarchical_kmeans: takes no initial centroids");
  require(!options.balance,
          "train_hierarchical_kmeans: takes no balance, because parts are trained independently");
  require(!options.batch_size, "train_hierarchical_kmeans: takes no batch_size");
  const DefaultFloatEnvironment environment;
  context.state().cancel.check();
  check_finite("train_hierarchical_kmeans", context, rows);
  return cluster::train_hierarchy(context, rows, clusters, options);
}

namespace {

// rows have been checked.
Neighbors assign_balanced(const Context& context, const RowsView& rows, const RowsView& centroids,
                          const AssignOptions& options) {
  const Context::State& state = context.state();
  require(rows.place().kind == DeviceKind::cpu && centroids.place().kind == DeviceKind::cpu,
          "assign: with a balance, rows and centroids must be on the host");
  require(rows.rows() <= max_shard_rows && centroids.rows() <= max_shard_rows,
          "assign: with a balance, rows and centroids must be at most {}, got {} and {}", max_shard_rows,
          rows.rows(), centroids.rows());
  const std::uint64_t result_bytes = rows.rows() * (sizeof(Id) + sizeof(float));
  const std::uint64_t scratch_bytes = 2 * buffer_bytes(rows.rows(), sizeof(std::uint32_t));
  const cluster::CentroidSearchArgs args = {.rows = rows,
                                            .max_centroids = centroids.rows(),
                                            .centroid_type = centroids.type(),
                                            .metric = options.metric,
                                            .distances = true,
                                            .once = true};
  check_memory("assign", context,
               result_bytes + scratch_bytes +
                   std::max(CentroidSearch::min_bytes(context, args),
                            cluster::balance_bytes(context, rows, centroids.rows(), centroids.type(),
                                                   options.metric)));
  const Reservation reservation(*state.budget, result_bytes);
  Buffer<std::uint32_t> nearest(*state.budget, rows.rows());
  Buffer<std::uint32_t> scratch(*state.budget, rows.rows());
  Neighbors result{Matrix<Id>(rows.rows(), 1), Matrix<float>(rows.rows(), 1)};
  const std::span<float> distances(result.distances.data(), rows.rows());
  ProgressMeter progress(state.options.progress, state.clock, "assign",
                         std::uint64_t{rows.rows()} * centroids.rows());
  if (rows.rows() > 0) {
    CentroidSearch(context, args).nearest(centroids, nearest.span(), distances, &progress);
    cluster::balance_clusters(
        context, {.rows = rows,
                  .centroids = centroids,
                  .metric = options.metric,
                  .max_rows = cluster::max_cluster_rows(rows.rows(), centroids.rows(), *options.balance),
                  .nearest = nearest.span(),
                  .distances = distances,
                  .scratch = scratch.span()});
  }
  std::ranges::copy(nearest.span(), result.ids.data());
  progress.finish();
  return result;
}

}  // namespace

Neighbors assign(const Context& context, RowsView rows, RowsView centroids, const AssignOptions& options) {
  require(centroids.rows() >= 1, "assign: there must be at least 1 centroid, got 0");
  check_rows("assign", context, rows, centroids, {"vectors", "centroids"});
  const DefaultFloatEnvironment environment;  // bounds are computed on this thread too
  const Context::State& state = context.state();
  state.cancel.check();
  check_balance("assign", options.balance);
  if (options.balance) return assign_balanced(context, rows, centroids, options);
  const cluster::CentroidSearchArgs args = {.rows = rows,
                                            .max_centroids = centroids.rows(),
                                            .centroid_type = centroids.type(),
                                            .metric = options.metric,
                                            .distances = true,
                                            .once = true};
  const std::uint64_t result_bytes =
      checked_multiply(rows.rows(), sizeof(Id) + sizeof(float) + sizeof(std::uint32_t), "assign");
  // knn also tiles the centroids if memory is short.
  if (state.backend.ops.assign == nullptr || centroids.rows() > max_shard_rows || rows.rows() == 0 ||
      result_bytes + CentroidSearch::min_bytes(context, args) > state.budget->available())
    return knn(context, rows, centroids, 1, {.metric = options.metric});
  const Reservation reservation(*state.budget, result_bytes);
  std::vector<std::uint32_t> nearest(rows.rows());
  Neighbors result{Matrix<Id>(rows.rows(), 1), Matrix<float>(rows.rows(), 1)};
  ProgressMeter progress(state.options.progress, state.clock, "assign",
                         std::uint64_t{rows.rows()} * centroids.rows());
  CentroidSearch(context, args)
      .nearest(centroids, nearest, {result.distances.data(), rows.rows()}, &progress);
  std::ranges::copy(nearest, result.ids.data());
  progress.finish();
  return result;
}

}  // namespace nearwise
