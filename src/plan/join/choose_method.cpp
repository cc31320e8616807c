// The method of a join: copies and comparisons of partitions, predicted on a sample.
//
// The choice depends on the file, the options, the memory limit and the seed alone, never on a measured time:
// every process that makes the plan must choose the same tasks.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/check.h"
#include "core/checked.h"
#include "graph/random_streams.h"
#include "ops/finite_rows.h"
#include "plan/join/join_work.h"
#include "plan/join/partition_members.h"
#include "plan/partition/train_centroids.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {
namespace {

// Training takes place whenever the plan is made: this many partitions, about a second.
constexpr std::size_t max_join_partitions = 8192;
// Of which copies and comparisons are predicted.
constexpr std::size_t max_predicted_rows = 8192;
// The cost of writing, reading and gathering a vector, as in plan/partition/choose_partitions.cpp.
constexpr double comparisons_per_copy = 10'000;
// Disk space of `automatic`, relative to the vectors.
constexpr double most_copies = 8;
// Vectors of a group in all work files.
constexpr std::uint64_t group_bytes = std::uint64_t{256} << 20;
constexpr std::size_t max_groups = 128;
constexpr std::uint64_t pair_bytes = sizeof(Id) + sizeof(float) + 3 * sizeof(std::uint32_t);

double as_double(std::size_t number) { return static_cast<double>(number); }

// About half of the memory for what is gathered, so that an exact search has the other.
JoinPartitions sizes_of(const Context& context, const RowsView& rows, const JoinWork& work) {
  const std::uint64_t usable = usable_memory(context.memory_limit());
  const std::uint64_t free = usable <= join_bytes ? 0 : usable - join_bytes;
  const std::uint64_t row_bytes = row_bytes_of(rows);
  JoinPartitions sizes;
  const std::uint64_t trained = free / 2 / (row_bytes + 2 * packed_bytes(rows));
  sizes.count =
      std::clamp<std::size_t>(std::min(static_cast<std::size_t>(std::sqrt(as_double(rows.rows()))),
                                       static_cast<std::size_t>(trained) / GraphShape::rows_per_partition),
                              1, max_join_partitions);
  sizes.sampled_rows = std::min(rows.rows(), sizes.count * GraphShape::rows_per_partition);
  // A chunk of vectors that are all duplicates of each other is compared in rows whose pairs fit.
  sizes.chunk_rows = std::max<std::uint64_t>(
      least_joined_rows,
      std::min(free / 2 / (row_bytes + packed_bytes(rows)), usable / 4 / (least_joined_rows * pair_bytes)));
  sizes.piece = std::clamp<std::uint64_t>(usable / 512, 4096, std::uint64_t{1} << 20);
  sizes.part_members = std::max<std::uint64_t>(
      sizes.piece, std::min<std::uint64_t>(usable / 128, std::uint64_t{2} * work.block_rows));
  sizes.run_pairs = std::clamp<std::uint64_t>(usable / 192, 4096, std::uint64_t{1} << 20);
  return sizes;
}

void predict(const Context& context, const RowsView& rows, JoinWork& work) {
  const Matrix<float> centroids = join_centroids(context, work, rows);
  const graph::RowSample sample =
      checked_sample(context, work, rows, sample_rows(context, rows, max_predicted_rows), Random(0));
  const PartitionReach reach(work.metric, work.threshold, rows.dim());
  std::vector<double> homes(centroids.rows());
  std::vector<double> copies(centroids.rows());
  MemberSearch(context, centroids, reach, work.partitions.piece)
      .search(sample.view(), 0, [&](std::span<const PartitionMember> members) {
        for (const PartitionMember& member : members)
          (member.is_copy() ? copies : homes)[member.partition()] += 1;
      });
  double stored = 0;
  double compared = 0;  // pairs of different rows of the sample
  for (std::size_t partition = 0; partition < centroids.rows(); ++partition) {
    stored += homes[partition] + copies[partition];
    compared += homes[partition] * (homes[partition] - 1) / 2 + homes[partition] * copies[partition];
  }
  const double sampled = as_double(sample.view().rows());
  const double all = as_double(rows.rows());
  work.partitions.copies = stored / sampled;
  work.partitions.comparisons = sampled < 2 ? 0 : compared * (all * (all - 1)) / (sampled * (sampled - 1));
  const auto stored_bytes =
      static_cast<std::uint64_t>(stored / sampled * all * as_double(row_bytes_of(rows)));
  work.partitions.groups = std::clamp<std::size_t>(divide_up(stored_bytes, group_bytes), 1,
                                                   std::min(centroids.rows(), max_groups));
}

double all_pairs(std::size_t rows) { return as_double(rows) * as_double(rows - 1) / 2; }

bool is_cheaper(const JoinWork& work) {
  const double rows = as_double(work.rows);
  const JoinPartitions& by = work.partitions;
  return by.copies <= most_copies &&
         rows * as_double(by.count) + by.comparisons + comparisons_per_copy * by.copies * rows <
             all_pairs(work.rows);
}

Matrix<float> distinct(const Matrix<float>& trained, Metric metric) {
  const auto is_usable = [&](std::size_t row) {
    const auto values = trained.row(row);
    return std::ranges::all_of(values, [](float value) { return std::isfinite(value); }) &&
           (metric != Metric::cosine || std::ranges::any_of(values, [](float value) { return value != 0; }));
  };
  std::vector<std::size_t> order;
  for (std::size_t row = 0; row < trained.rows(); ++row)
    if (is_usable(row)) order.push_back(row);
  std::ranges::stable_sort(order, [&](std::size_t left, std::size_t right) {
    return std::ranges::lexicographical_compare(trained.row(left), trained.row(right));
  });
  // Not std::ranges::unique, whose result clang 14 cannot compile.
  const auto repeated = std::unique(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    return std::ranges::equal(trained.row(left), trained.row(right));
  });
  order.erase(repeated, order.end());
  std::ranges::sort(order);
  Matrix<float> centroids(std::max<std::size_t>(1, order.size()), trained.cols());
  std::ranges::fill(centroids.row(0), 1.0F);  // if there is none
  for (std::size_t i = 0; i < order.size(); ++i)
    std::ranges::copy(trained.row(order[i]), centroids.row(i).begin());
  return centroids;
}

}  // namespace

std::size_t sample_rows(const Context& context, const RowsView& rows, std::size_t most) {
  const std::uint64_t fitting = usable_memory(context.memory_limit()) / 4 / row_bytes_of(rows);
  return std::min<std::size_t>(rows.rows(), std::clamp<std::uint64_t>(fitting, 1, most));
}

graph::RowSample checked_sample(const Context& context, const JoinWork& work, const RowsView& rows,
                                std::size_t count, const Random& random) {
  const Context silent = context.without_progress();
  graph::RowSample sample(silent, rows, count, random);
  if (const std::size_t bad = first_not_finite(silent, sample.view()); bad < sample.view().rows())
    check_finite(work.operation(), silent, rows.slice(sample.number(bad), 1), sample.number(bad));
  return sample;
}

Matrix<float> join_centroids(const Context& context, const JoinWork& work, const RowsView& rows) {
  const graph::RowSample sample =
      checked_sample(context, work, rows, work.partitions.sampled_rows,
                     graph::random_stream(context.seed(), graph::Draw::partition_rows));
  const Matrix<float> trained = train_centroids(
      context.without_progress(), graph::partition_metric(work.metric), sample.view(), work.partitions.count);
  return distinct(trained, work.metric);
}

void choose_method(const Context& context, const RowsView& rows, JoinWork& work) {
  const bool is_forced = work.method == JoinMethod::partitions;
  require(!is_forced || work.metric != Metric::inner_product,
          "{}: method partitions needs a distance, got the metric inner_product", work.operation());
  const bool is_possible = work.metric != Metric::inner_product && work.method != JoinMethod::pairs;
  // Fewer pairs than copying alone costs.
  const bool is_small = all_pairs(work.rows) <= comparisons_per_copy * as_double(work.rows);
  if (is_forced || (is_possible && !is_small)) {
    work.partitions = sizes_of(context, rows, work);
    predict(context, rows, work);
    if (is_forced || is_cheaper(work)) {
      work.method = JoinMethod::partitions;
      return;
    }
  }
  work.method = JoinMethod::pairs;
  work.partitions = {};
  work.partitions.comparisons = all_pairs(work.rows);
}

}  // namespace nearwise::plan
