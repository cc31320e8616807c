#include "graph/build/partitions.h"

#include <algorithm>

#include "backend/context_state.h"
#include "backend/stages.h"
#include "cluster/training.h"
#include "core/check.h"
#include "core/cluster_members.h"
#include "graph/partition/partition_search.h"
#include "graph/random_streams.h"
#include "graph/row_sample.h"
#include "nearwise/kmeans.h"

namespace nearwise::graph {
namespace {

// Training rows per centroid. With 16 instead, assigned rows cost 2 % more pairs.
constexpr std::size_t rows_per_partition = 32;

std::size_t sampled_rows(const RowsView& rows, const PartitionOptions& options) {
  return std::min(rows.rows(), options.partitions * rows_per_partition);
}

// Pairs of exact search that take as long: a search among few centroids is less efficient.
constexpr double pairs_per_comparison = 4;

double training_pairs(const RowsView& rows, const PartitionOptions& options) {
  return pairs_per_comparison * static_cast<double>(training_iterations * sampled_rows(rows, options)) *
         static_cast<double>(options.partitions);
}
double search_pairs(const RowsView& rows, const PartitionOptions& options) {
  return pairs_per_comparison * static_cast<double>(rows.rows()) * static_cast<double>(options.partitions);
}

Matrix<float> train_centroids(const Context& context, const RowsView& rows, const PartitionOptions& options) {
  const auto draw = [&](Draw use) { return random_stream(context.seed(), use, options.attempt); };
  const RowSample sample(context, rows, sampled_rows(rows, options), draw(Draw::partition_rows));
  const RowSample initial(context, sample.view(), options.partitions, draw(Draw::centroids));
  return train_kmeans(context, sample.view(), options.partitions,
                      {.metric = partition_metric(options.metric),
                       .iterations = training_iterations,
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
  const double searching = search_pairs(rows, options);
  Stages stages(context, "find_partitions");
  const Matrix<float> centroids =
      train_centroids(stages.next(training_pairs(rows, options), searching), rows, options);
  PartitionSearch(stages.next(searching, 0), centroids, {}, partition_metric(options.metric))
      .find(rows, {.overlap = overlap_}, of_row_.span());
  stages.finish();
}

double Partitions::cost(const RowsView& rows, const PartitionOptions& options) {
  return training_pairs(rows, options) + search_pairs(rows, options);
}

std::uint64_t Partitions::bytes(const Context& context, const RowsView& rows,
                                const PartitionOptions& options) {
  const std::size_t sampled = sampled_rows(rows, options);
  const RowsView sample(rows.data(), rows.type(), sampled, rows.dim(), row_bytes_of(rows));
  const std::uint64_t training = RowSample::bytes(rows, sampled) +
                                 RowSample::bytes(rows, options.partitions) +
                                 cluster::training_bytes(context, sample, options.partitions,
                                                         {.metric = partition_metric(options.metric)});
  return std::uint64_t{2} * rows.rows() * options.overlap * sizeof(std::uint32_t) +
         options.partitions * rows.dim() * sizeof(float) +
         std::max(training, PartitionSearch::bytes(rows, options.partitions, false, options.overlap));
}

void Partitions::keep(std::size_t overlap) {
  NEARWISE_ASSERT(overlap >= 1 && overlap <= overlap_);
  kept_ = overlap;
}

void Partitions::order_rows(std::span<std::uint32_t> order) {
  // members_ is free until groups() fills it.
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
  // The fill above moved each begin to its end.
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
    // Not std::ranges::stable_partition, whose result clang 14 cannot compile.
    const auto right = std::stable_partition(members.begin(), members.end(),
                                             [&](std::uint32_t place) { return order[place] < left_rows; });
    new_counts_[group] = static_cast<std::uint32_t>(right - members.begin());
    begin = ends_[group];
  }
  groups.bipartite = true;
  return groups;
}

}  // namespace nearwise::graph
