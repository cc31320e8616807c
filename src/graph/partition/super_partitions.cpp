#include "graph/partition/super_partitions.h"

#include <algorithm>
#include <cmath>

#include "cluster/training.h"
#include "graph/partition/partition_search.h"
#include "graph/random_streams.h"
#include "graph/row_sample.h"
#include "nearwise/exact.h"
#include "nearwise/kmeans.h"

namespace nearwise::graph {
namespace {

// Partitions per super-partition. Small, because a large one is a union of well-separated clusters whose mean
// is near no row: with 10,000 partitions a row was compared with 3,100 of them at 312 super-partitions, with
// 1,800 at 1,250.
constexpr std::size_t mean_partitions = 8;
// Upper bound: max(2048, 4 * sqrt(partitions)), at which there are about as many super-partitions as
// partitions near one.
constexpr std::size_t max_small_count = 2048;
constexpr std::size_t max_per_root = 4;
// Super-partitions that one partition is near, at most.
constexpr std::size_t max_near_one = 32;
// Sampled rows, and the share of their nearest partitions that must be found.
constexpr std::size_t max_sample = 2048;
constexpr double min_share_found = 0.985;

// The number of its nearest super-partitions that each partition must be listed in so that min_share_found of
// the sample's partitions are found. nearest: super-partitions of each partition; own: super-partition of
// each sampled row; exact: nearest partitions of each sampled row.
std::size_t required_lists(const Neighbors& nearest, const Neighbors& own, const Neighbors& exact) {
  std::vector<std::size_t> needed;
  needed.reserve(exact.ids.rows() * exact.ids.cols());
  for (std::size_t row = 0; row < exact.ids.rows(); ++row)
    for (const Id partition : exact.ids.row(row)) {
      const auto listed = nearest.ids.row(static_cast<std::size_t>(partition));
      const auto found = std::ranges::find(listed, own.ids(row, 0));
      needed.push_back(std::min(listed.size(), static_cast<std::size_t>(found - listed.begin()) + 1));
    }
  const auto last = static_cast<std::ptrdiff_t>(min_share_found * static_cast<double>(needed.size() - 1));
  std::nth_element(needed.begin(), needed.begin() + last, needed.end());
  return needed[static_cast<std::size_t>(last)];
}

// The centroids that are nearest to at least one partition. nearest: of each partition, [partitions, 1].
Matrix<float> without_empty(const Matrix<float>& centroids, const Neighbors& nearest) {
  std::vector<bool> is_used(centroids.rows());
  for (std::size_t partition = 0; partition < nearest.ids.rows(); ++partition)
    is_used[static_cast<std::size_t>(nearest.ids(partition, 0))] = true;
  Matrix<float> kept(static_cast<std::size_t>(std::ranges::count(is_used, true)), centroids.cols());
  std::size_t place = 0;
  for (std::size_t i = 0; i < centroids.rows(); ++i)
    if (is_used[i]) std::ranges::copy(centroids.row(i), kept.row(place++).begin());
  return kept;
}

}  // namespace

std::size_t SuperPartitions::max_count(std::size_t partitions) {
  const auto root =
      std::max<std::size_t>(1, static_cast<std::size_t>(std::sqrt(static_cast<double>(partitions))));
  return std::clamp(partitions / mean_partitions, root, std::max(max_small_count, max_per_root * root));
}

std::size_t SuperPartitions::max_near(std::size_t partitions) {
  return std::min(partitions, std::max<std::size_t>(4096, max_near_one * max_count(partitions)));
}

std::uint64_t SuperPartitions::bytes(const Context& context, std::size_t partitions, std::size_t dim,
                                     std::size_t overlap) {
  constexpr std::uint64_t answer = sizeof(Id) + sizeof(float);
  const std::size_t count = max_count(partitions);
  const RowsView centroids(nullptr, ElementType::f32, partitions, dim, dim * sizeof(float));
  const std::uint64_t packed = (partitions + max_sample) * (dim * sizeof(float) + 1024);
  return count * dim * sizeof(float) + partitions * max_near_one * (answer + sizeof(std::uint32_t)) +
         std::max(cluster::training_bytes(context, centroids, count, {}),
                  packed + max_sample * (dim * sizeof(float) + (overlap + 1) * answer));
}

SuperPartitions SuperPartitions::make(const Context& context, MatrixView<const float> centroids,
                                      const RowsView& sample, std::size_t overlap, Metric metric) {
  const auto nearest_of = [&](const RowsView& rows, const RowsView& base, std::size_t k) {
    return knn(context, rows, base, k, {.metric = metric});
  };
  const KMeansOptions training = {.metric = metric, .iterations = training_iterations, .tolerance = 0};
  const Matrix<float> trained =
      train_kmeans(context, centroids, max_count(centroids.rows()), training).centroids;
  SuperPartitions made;
  made.centroids = without_empty(trained, nearest_of(centroids, trained, 1));
  const std::size_t count = made.centroids.rows();
  const Neighbors nearest = nearest_of(centroids, made.centroids, std::min(count, max_near_one));
  const RowSample some(context, sample, std::min(sample.rows(), max_sample),
                       random_stream(context.seed(), Draw::centroids, 1));
  const std::size_t lists = required_lists(nearest, nearest_of(some.view(), made.centroids, 1),
                                           nearest_of(some.view(), centroids, overlap));
  // Partitions for which it is the nearest super-partition come first; at max_near the farthest are left out.
  const std::size_t most = max_near(centroids.rows());
  std::vector<std::vector<std::uint32_t>> near(count);
  for (std::size_t i = 0; i < lists; ++i)
    for (std::uint32_t partition = 0; partition < centroids.rows(); ++partition)
      if (auto& listed = near[static_cast<std::size_t>(nearest.ids(partition, i))]; listed.size() < most)
        listed.push_back(partition);
  for (const auto& listed : near) {
    made.partitions.insert(made.partitions.end(), listed.begin(), listed.end());
    made.ends.push_back(made.partitions.size());
  }
  return made;
}

}  // namespace nearwise::graph
