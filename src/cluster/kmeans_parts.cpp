#include "nearwise/kmeans_parts.h"

#include <algorithm>
#include <numeric>

#include "backend/dispatch.h"
#include "cluster/centroid_search.h"
#include "cluster/kmeans_arguments.h"
#include "cluster/row_values.h"
#include "cluster/seeding.h"
#include "cluster/split.h"
#include "core/checked.h"
#include "core/cluster_members.h"
#include "core/float_environment.h"
#include "core/lost_pages.h"
#include "core/progress.h"
#include "ops/check_rows.h"
#include "ops/finite_rows.h"
#include "ops/knn_plan.h"
#include "ops/memory_limit.h"

namespace nearwise {
namespace {

using cluster::CentroidSearch;
using cluster::CentroidSearchArgs;

CentroidSearchArgs search_args(const KMeansBlock& block, std::size_t clusters) {
  return {.rows = block.rows, .max_centroids = clusters, .metric = block.metric, .once = true};
}

void check_block(const char* operation, const Context& context, const KMeansBlock& block,
                 MatrixView<const float> centroids) {
  require(centroids.rows() >= 1, "{}: there must be at least 1 centroid, got 0", operation);
  check_rows(operation, context, block.rows, centroids, {"vectors", "centroids"});
  require(block.rows.place().kind == DeviceKind::cpu && centroids.place().kind == DeviceKind::cpu,
          "{}: rows and centroids must be on the host", operation);
  require(block.rows.rows() <= max_shard_rows && centroids.rows() <= max_shard_rows,
          "{}: rows and centroids must be at most {}, got {} and {}", operation, max_shard_rows,
          block.rows.rows(), centroids.rows());
  require(block.metric != Metric::euclidean,
          "{}: the metric must be sqeuclidean, inner_product or cosine, got euclidean (k-means "
          "minimises squared distances)",
          operation);
}

// Rows by cluster.
struct Members {
  Members(MemoryBudget& budget, std::size_t rows, std::size_t clusters)
      : nearest(budget, rows), members(budget, rows), ends(budget, clusters) {}

  static std::uint64_t bytes(std::size_t rows, std::size_t clusters) {
    return 2 * buffer_bytes(rows, sizeof(std::uint32_t)) + buffer_bytes(clusters, sizeof(std::uint64_t));
  }

  Buffer<std::uint32_t> nearest;
  Buffer<std::uint32_t> members;
  Buffer<std::uint64_t> ends;
};

// Checks rows for NaN, then finds their nearest centroids.
void find_nearest(const char* operation, const Context& context, const KMeansBlock& block,
                  MatrixView<const float> centroids, std::span<std::uint32_t> nearest) {
  check_finite(operation, context, block.rows, block.first_row);
  check_finite(operation, context, centroids, 0, "centroid");
  const Context::State& state = context.state();
  ProgressMeter progress(state.options.progress, state.clock, operation,
                         std::uint64_t{block.rows.rows()} * centroids.rows());
  CentroidSearch(context, search_args(block, centroids.rows())).nearest(centroids, nearest, {}, &progress);
  progress.finish();
}

}  // namespace

Matrix<float> seed_kmeans(const Context& context, RowsView rows, std::size_t clusters,
                          const KMeansOptions& options) {
  // batch_size lifts the limit on the number of rows.
  const KMeansOptions seeding = {.metric = options.metric,
                                 .seeding = options.seeding,
                                 .initial = options.initial,
                                 .batch_size = std::max<std::size_t>(clusters, 1)};
  cluster::check_arguments("seed_kmeans", context, rows, clusters, seeding);
  const DefaultFloatEnvironment environment;
  const Context::State& state = context.state();
  state.cancel.check();
  const std::uint64_t result_bytes =
      buffer_bytes(checked_multiply(clusters, rows.dim(), "seed_kmeans"), sizeof(float));
  const bool given = options.initial.rows() != 0;
  check_memory("seed_kmeans", context,
               result_bytes + (given ? buffer_bytes(rows.dim(), sizeof(double))
                                     : cluster::seeding_bytes(context, rows, clusters, seeding)));
  const Reservation reservation(*state.budget, result_bytes);
  Matrix<float> centroids(clusters, rows.dim());
  if (!given) {
    cluster::check_sample("seed_kmeans", context, rows, clusters, seeding);
    cluster::seed_centroids(context, rows, seeding, centroids.view());
    return centroids;
  }
  check_finite("seed_kmeans", context, options.initial, 0, "initial centroid");
  Buffer<double> scratch(*state.budget, rows.dim());
  for (std::size_t c = 0; c < clusters; ++c)
    cluster::row_to_centroid(options.initial, c, options.metric, scratch.span(), centroids.row(c));
  return centroids;
}

ClusterSums sum_clusters(const Context& context, const KMeansBlock& block,
                         MatrixView<const float> centroids) {
  check_block("sum_clusters", context, block, centroids);
  const DefaultFloatEnvironment environment;  // bounds are computed on this thread too
  const Context::State& state = context.state();
  state.cancel.check();
  const RowsView& rows = block.rows;
  const std::size_t clusters = centroids.rows();
  const std::size_t elements = checked_multiply(clusters, rows.dim(), "sum_clusters");
  const std::uint64_t result_bytes = buffer_bytes(elements, sizeof(double)) + 2 * clusters * sizeof(double);
  const auto stream = open_stream(context);
  check_memory(
      "sum_clusters", context,
      result_bytes + buffer_bytes(elements, sizeof(float)) + Members::bytes(rows.rows(), clusters) +
          std::max(CentroidSearch::min_bytes(context, search_args(block, clusters)),
                   dispatch(&Ops::centroid_means_bytes, "centroid_means", *stream, rows.rows(), rows.dim())));
  const Reservation reservation(*state.budget, result_bytes);
  ClusterSums result{Matrix<double>(clusters, rows.dim()), std::vector<std::uint64_t>(clusters, 0),
                     std::vector<double>(clusters, 0)};
  if (rows.rows() == 0) {
    std::fill_n(result.sums.data(), elements, 0.0);
    return result;
  }
  Members found(*state.budget, rows.rows(), clusters);
  find_nearest("sum_clusters", context, block, centroids, found.nearest.span());
  Buffer<float> means(*state.budget, elements);  // of this block alone; unused
  dispatch(&Ops::centroid_means, "centroid_means", *stream,
           CentroidMeansArgs{.rows = rows,
                             .nearest = found.nearest.span(),
                             .centroids = centroids,
                             .metric = block.metric,
                             .means = MatrixView<float>(means.data(), clusters, rows.dim()),
                             .sums = result.sums.view(),
                             .members = found.members.span(),
                             .ends = found.ends.span(),
                             .errors = result.errors});
  std::adjacent_difference(found.ends.data(), found.ends.data() + clusters, result.sizes.begin());
  return result;
}

Matrix<float> move_centroids(const ClusterSums& sums, MatrixView<const float> centroids, Metric metric) {
  require(sums.sums.rows() == centroids.rows() && sums.sums.cols() == centroids.cols() &&
              sums.sizes.size() == centroids.rows(),
          "move_centroids: sums and sizes must be of {} centroids of {} elements, got [{}, {}] and {}",
          centroids.rows(), centroids.cols(), sums.sums.rows(), sums.sums.cols(), sums.sizes.size());
  Matrix<float> moved(centroids.rows(), centroids.cols());
  for (std::size_t c = 0; c < centroids.rows(); ++c)
    centroid_from_sum(sums.sums.row(c), sums.sizes[c], metric, centroids.row(c), moved.row(c));
  return moved;
}

std::vector<ClusterSplit> choose_splits(const ClusterSums& sums) {
  require(sums.sizes.size() == sums.errors.size(),
          "choose_splits: there must be as many sizes as errors, got {} and {}", sums.sizes.size(),
          sums.errors.size());
  std::vector<std::uint64_t> ends(sums.sizes.size());
  std::partial_sum(sums.sizes.begin(), sums.sizes.end(), ends.begin());
  std::vector<ClusterSplit> splits;
  for (const cluster::Donor& donor : cluster::choose_donors(ends, sums.errors, 1))
    splits.push_back({donor.cluster, donor.centroids - 1});
  return splits;
}

std::vector<SplitRow> draw_split_rows(const Context& context, const KMeansBlock& block,
                                      MatrixView<const float> assigned, MatrixView<const float> moved,
                                      std::span<const ClusterSplit> splits, std::uint64_t iteration) {
  check_block("draw_split_rows", context, block, assigned);
  require(moved.rows() == assigned.rows() && moved.cols() == assigned.cols(),
          "draw_split_rows: there must be as many moved centroids as those assigned to, got [{}, {}] and "
          "[{}, {}]",
          moved.rows(), moved.cols(), assigned.rows(), assigned.cols());
  for (const ClusterSplit& split : splits)
    require(split.cluster < moved.rows() && split.rows < moved.rows(),
            "draw_split_rows: there are {} clusters, got {} rows of cluster {}", moved.rows(), split.rows,
            split.cluster);
  const DefaultFloatEnvironment environment;
  const Context::State& state = context.state();
  state.cancel.check();
  const std::size_t clusters = moved.rows();
  const std::uint64_t drawing = cluster::split_bytes(context, clusters, moved.cols());
  check_memory("draw_split_rows", context,
               Members::bytes(block.rows.rows(), clusters) +
                   std::max(CentroidSearch::min_bytes(context, search_args(block, clusters)), drawing));
  std::vector<SplitRow> rows;
  if (block.rows.rows() == 0) return rows;
  Members found(*state.budget, block.rows.rows(), clusters);
  find_nearest("draw_split_rows", context, block, assigned, found.nearest.span());
  sort_by_cluster(found.nearest.span(), found.members.span(), found.ends.span());
  const cluster::RaceArgs race = {.rows = block.rows,
                                  .first_row = block.first_row,
                                  .metric = block.metric,
                                  .members = found.members.span(),
                                  .ends = found.ends.span(),
                                  .round = iteration,
                                  .centroids = moved};
  for (const ClusterSplit& split : splits) {
    state.cancel.check();
    for (const auto& [time, row] :
         cluster::draw_members(context, race, {.cluster = split.cluster, .centroids = split.rows + 1}))
      rows.push_back({split.cluster, time, row});
  }
  check_lost_pages();
  return rows;
}

}  // namespace nearwise
