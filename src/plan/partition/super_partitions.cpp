#include "plan/partition/super_partitions.h"

#include <algorithm>
#include <cmath>

#include "cluster/training.h"
#include "graph/build/random_streams.h"
#include "graph/build/row_sample.h"
#include "nearwise/exact.h"
#include "nearwise/kmeans.h"

namespace nearwise::plan {
namespace {

constexpr std::size_t iterations = 4;
// As small as rows can still be compared with all of them. Of well-separated clusters large ones have unions, whose means are all
// alike, so that one of them may be nearest for very many rows: of 10,000 partitions a row saw 3,100 with 312 super-partitions, 1,800 with 1,250.
constexpr std::size_t partitions_of_super_partition = 8;
constexpr std::size_t many_super_partitions = 2048;
// Of very many partitions so many times the square root: then there are about as many super-partitions as partitions near one.
constexpr std::size_t super_partitions_of_root = 4;
// Rows by which it is told how many super-partitions a partition has to be near, and the share of their partitions that is found then.
constexpr std::size_t max_asked = 2048;
constexpr double share_found = 0.985;

// The least number of its nearest super-partitions that a partition is near, with which a share of the sample's partitions is found.
// nearest: of partitions, [partitions, most]; super_partition_of and exact: of the sample, [rows, 1] super-partitions and [rows, overlap] partitions.
std::size_t enough_super_partitions(const Neighbors& nearest, const Neighbors& super_partition_of,
                                    const Neighbors& exact) {
  std::vector<std::size_t> needed;
  needed.reserve(exact.ids.rows() * exact.ids.cols());
  for (std::size_t row = 0; row < exact.ids.rows(); ++row)
    for (const Id partition : exact.ids.row(row)) {
      const auto super_partitions = nearest.ids.row(static_cast<std::size_t>(partition));
      const auto found = std::ranges::find(super_partitions, super_partition_of.ids(row, 0));
      needed.push_back(
          std::min(super_partitions.size(), static_cast<std::size_t>(found - super_partitions.begin()) + 1));
    }
  const auto last = static_cast<std::ptrdiff_t>(share_found * static_cast<double>(needed.size() - 1));
  std::nth_element(needed.begin(), needed.begin() + last, needed.end());
  return needed[static_cast<std::size_t>(last)];
}

// Without those that are no partition's nearest. nearest: of partitions, [partitions, 1].
Matrix<float> with_partitions(const Matrix<float>& centres, const Neighbors& nearest) {
  std::vector<bool> has_partition(centres.rows());
  for (std::size_t partition = 0; partition < nearest.ids.rows(); ++partition)
    has_partition[static_cast<std::size_t>(nearest.ids(partition, 0))] = true;
  Matrix<float> kept(static_cast<std::size_t>(std::ranges::count(has_partition, true)), centres.cols());
  std::size_t place = 0;
  for (std::size_t super_partition = 0; super_partition < centres.rows(); ++super_partition)
    if (has_partition[super_partition])
      std::ranges::copy(centres.row(super_partition), kept.row(place++).begin());
  return kept;
}

}  // namespace

std::size_t SuperPartitions::max_super_partitions(std::size_t partitions) {
  const auto root =
      std::max<std::size_t>(1, static_cast<std::size_t>(std::sqrt(static_cast<double>(partitions))));
  return std::clamp(partitions / partitions_of_super_partition, root,
                    std::max(many_super_partitions, super_partitions_of_root * root));
}

std::size_t SuperPartitions::max_near(std::size_t partitions) {
  return std::min(partitions,
                  std::max<std::size_t>(4096, max_share_of_partition * max_super_partitions(partitions)));
}

std::uint64_t SuperPartitions::bytes(const Context& context, std::size_t partitions, std::size_t dim,
                                     std::size_t overlap) {
  constexpr std::uint64_t answer = sizeof(Id) + sizeof(float);
  const std::size_t super_partitions = max_super_partitions(partitions);
  const RowsView centroids(nullptr, ElementType::f32, partitions, dim, dim * sizeof(float));
  const std::uint64_t packed = (partitions + max_asked) * (dim * sizeof(float) + 1024);
  return super_partitions * dim * sizeof(float) +
         partitions * max_share_of_partition * (answer + sizeof(std::uint32_t)) +
         std::max(cluster::training_bytes(context, centroids, super_partitions, {}),
                  packed + max_asked * (dim * sizeof(float) + (overlap + 1) * answer));
}

SuperPartitions SuperPartitions::make(const Context& context, MatrixView<const float> centroids,
                                      const RowsView& sample, std::size_t overlap, Metric metric) {
  const Matrix<float> centres = train_kmeans(context, centroids, max_super_partitions(centroids.rows()),
                                             {.metric = metric, .iterations = iterations, .tolerance = 0})
                                    .centroids;
  SuperPartitions made;
  made.centres = with_partitions(centres, knn(context, centroids, centres, 1, {.metric = metric}));
  const std::size_t super_partitions = made.centres.rows();
  const Neighbors nearest = knn(context, centroids, made.centres,
                                std::min(super_partitions, max_share_of_partition), {.metric = metric});
  const graph::RowSample some(context, sample, std::min(sample.rows(), max_asked),
                              graph::random_stream(context.seed(), graph::Draw::centroids, 1));
  const std::size_t enough =
      enough_super_partitions(nearest, knn(context, some.view(), made.centres, 1, {.metric = metric}),
                              knn(context, some.view(), centroids, overlap, {.metric = metric}));
  // Those that have it as their nearest first, then as the next: where there are too many, the last are left out.
  const std::size_t most = max_near(centroids.rows());
  std::vector<std::vector<std::uint32_t>> near(super_partitions);
  for (std::size_t i = 0; i < enough; ++i)
    for (std::uint32_t partition = 0; partition < centroids.rows(); ++partition)
      if (auto& partitions = near[static_cast<std::size_t>(nearest.ids(partition, i))];
          partitions.size() < most)
        partitions.push_back(partition);
  for (const auto& partitions : near) {
    made.partitions.insert(made.partitions.end(), partitions.begin(), partitions.end());
    made.ends.push_back(made.partitions.size());
  }
  return made;
}

}  // namespace nearwise::plan
