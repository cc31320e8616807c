#include "graph/build/partitions.h"

#include <algorithm>

#include "backend/context_state.h"
#include "cluster/training.h"
#include "core/check.h"
#include "core/cluster_members.h"
#include "graph/build/random_streams.h"
#include "graph/build/row_sample.h"
#include "nearwise/exact.h"
#include "nearwise/kmeans.h"

namespace nearwise::graph {
namespace {

// Rows that each centroid is trained on, and how often: partitions need not be good, only not bad.
constexpr std::size_t rows_per_partition = 32;
constexpr std::size_t iterations = 4;
// Rows whose partitions are searched at a time.
constexpr std::size_t tile_rows = 1 << 16;

Metric partition_metric(Metric metric) { return metric == Metric::euclidean ? Metric::sqeuclidean : metric; }

Matrix<float> train_centroids(const Context& context, const RowsView& rows, const PartitionOptions& options) {
  const auto draw = [&](Draw use) { return random_stream(context.seed(), use, options.attempt); };
  const RowSample sample(context, rows, std::min(rows.rows(), options.partitions * rows_per_partition),
                         draw(Draw::partition_rows));
  const RowSample initial(context, sample.view(), options.partitions, draw(Draw::centroids));
  return train_kmeans(context, sample.view(), options.partitions,
                      {.metric = partition_metric(options.metric),
                       .iterations = iterations,
                       .tolerance = 0,
                       .initial = initial.view()})
      .centroids;
}

}  // namespace

Partitions::Partitions(const Context& context, const RowsView& rows, const PartitionOptions& options)
    : partitions_(options.partitions),
      overlap_(std::min(options.overlap, options.partitions)),
      kept_(overlap_),
      rows_(rows.rows()),
      of_row_(*context.state().budget, rows_ * overlap_),
      members_(*context.state().budget, rows_ * overlap_) {
  const Matrix<float> centroids = train_centroids(context, rows, options);
  // In tiles: the answer takes three times the bytes of what is kept.
  for (std::size_t first = 0; first < rows_; first += tile_rows) {
    const std::size_t count = std::min(tile_rows, rows_ - first);
    const Neighbors nearest = knn(context, rows.slice(first, count), centroids, overlap_,
                                  {.metric = partition_metric(options.metric)});
    std::ranges::transform(nearest.ids.data(), nearest.ids.data() + count * overlap_,
                           of_row_.data() + first * overlap_,
                           [](Id id) { return static_cast<std::uint32_t>(id); });
  }
}

std::uint64_t Partitions::bytes(const Context& context, const RowsView& rows,
                                const PartitionOptions& options) {
  const std::size_t sampled = std::min(rows.rows(), options.partitions * rows_per_partition);
  const RowsView sample(rows.data(), rows.type(), sampled, rows.dim(),
                        rows.dim() * element_size(rows.type()));
  const std::uint64_t training = RowSample::bytes(rows, sampled) +
                                 RowSample::bytes(rows, options.partitions) +
                                 cluster::training_bytes(context, sample, options.partitions,
                                                         {.metric = partition_metric(options.metric)});
  const std::size_t tile = std::min(tile_rows, rows.rows());
  const std::uint64_t answers = tile * options.overlap * (sizeof(Id) + sizeof(float));
  // What a search needs beside its answers to be worth its while.
  const std::uint64_t searching =
      (options.partitions + tile) * (rows.dim() * sizeof(float) + 1024) + (8 << 20);
  return std::uint64_t{2} * rows.rows() * options.overlap * sizeof(std::uint32_t) +
         options.partitions * rows.dim() * sizeof(float) + std::max(training, answers + searching);
}

bool Partitions::share(std::size_t row, std::size_t other, std::size_t nearest) const {
  const auto mine = of_row_.span().subspan(row * overlap_, nearest);
  const auto others = of_row_.span().subspan(other * overlap_, nearest);
  return std::ranges::find_first_of(mine, others) != mine.end();
}

void Partitions::keep(std::size_t nearest) {
  NEARWISE_ASSERT(nearest >= 1 && nearest <= overlap_);
  kept_ = nearest;
}

void Partitions::order_rows(std::span<std::uint32_t> order) {
  // Members are not known yet: their place serves.
  const std::span<std::uint32_t> first_partition = members_.span().first(rows_);
  for (std::size_t row = 0; row < rows_; ++row) first_partition[row] = of_row_[row * overlap_];
  std::vector<std::uint64_t> ends(partitions_);
  sort_by_cluster(first_partition, order, ends);
}

Groups Partitions::groups(std::span<const std::uint32_t> order) {
  std::vector<std::uint64_t> ends(partitions_ + 1);
  for (std::size_t row = 0; row < rows_; ++row)
    for (std::size_t i = 0; i < kept_; ++i) ++ends[of_row_[row * overlap_ + i] + 1];
  for (std::size_t partition = 0; partition < partitions_; ++partition)
    ends[partition + 1] += ends[partition];
  for (std::size_t place = 0; place < order.size(); ++place)
    for (std::size_t i = 0; i < kept_; ++i)
      members_[ends[of_row_[order[place] * overlap_ + i]]++] = static_cast<std::uint32_t>(place);
  // Filling moved every partition's begin to its end.
  std::uint64_t begin = 0;
  for (std::size_t partition = 0; partition < partitions_; ++partition) {
    while (begin < ends[partition]) {
      const std::uint64_t members = std::min<std::uint64_t>(max_partition_rows, ends[partition] - begin);
      begin += members;
      ends_.push_back(begin);
      new_counts_.push_back(static_cast<std::uint32_t>(members));
    }
  }
  return {members_.span().first(rows_ * kept_), ends_, new_counts_};
}

Groups Partitions::groups_of_sides(std::span<const std::uint32_t> order, std::size_t left_rows) {
  Groups groups = this->groups(order);
  std::uint64_t begin = 0;
  for (std::size_t group = 0; group < ends_.size(); ++group) {
    const auto members = members_.span().subspan(begin, ends_[group] - begin);
    // Not of std::ranges: what that returns is beyond clang 14.
    const auto right = std::stable_partition(members.begin(), members.end(),
                                             [&](std::uint32_t place) { return order[place] < left_rows; });
    new_counts_[group] = static_cast<std::uint32_t>(right - members.begin());
    begin = ends_[group];
  }
  groups.bipartite = true;
  return groups;
}

}  // namespace nearwise::graph
