#include "graph/build/builder.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "backend/stages.h"
#include "core/check.h"
#include "core/checked.h"
#include "core/distance.h"
#include "graph/build/partitions.h"
#include "graph/build/sample_neighbors.h"
#include "graph/partition/overlap_choice.h"
#include "graph/random_streams.h"
#include "ops/exact_search.h"

namespace nearwise::graph {
namespace {

constexpr std::size_t task_rows = 4096;
// compare_with_all() joins groups of this many rows with this many others.
constexpr std::size_t compared_chunk = 2048;
constexpr std::size_t other_chunk = max_partition_rows - compared_chunk;
// Members per call of the backend.
constexpr std::size_t compare_batch = 1 << 17;
// Rows per call of compare_candidates().
constexpr std::size_t candidate_batch = 4096;

// Additional memory of the comparisons.
std::uint64_t compare_bytes(std::size_t rows, std::size_t candidates) {
  return rows + std::max((compare_batch + max_partition_rows) * sizeof(std::uint32_t),
                         candidate_batch * (candidates + 1) * sizeof(std::uint32_t));
}
std::size_t candidates_of(const Tuning& tuning) { return std::max<std::size_t>(256, 2 * tuning.list); }

PartitionOptions partition_options(const RowsView& rows, Metric metric, const Tuning& tuning,
                                   std::uint64_t attempt) {
  return {.partitions = std::max<std::size_t>(1, rows.rows() * tuning.overlap / tuning.partition_rows),
          .overlap = tuning.overlap,
          .metric = metric,
          .attempt = attempt};
}

// Cost per row, in pairs of exact search. A pair within a partition takes 1.6 to 3 times as long as one of
// exact search (SIFT from 50,000 to 1M rows, text with 384 dimensions and 100,000 rows, 2 cores with AMX,
// 2026-11-15).
double partition_pairs(const Tuning& tuning) {
  return 2 * static_cast<double>(tuning.overlap) * static_cast<double>(tuning.partition_rows);
}
// At a reduced overlap partitions are smaller, too.
double partition_pairs(const Tuning& tuning, const Partitions& partitions) {
  const double part = static_cast<double>(partitions.overlap()) / static_cast<double>(tuning.overlap);
  return partition_pairs(tuning) * part * part;
}
// What is expected of it before the overlap is known: most data need half of it.
double expected_pairs(const Tuning& tuning, const RowsView& rows) {
  constexpr double typical_share = 0.3;
  return typical_share * partition_pairs(tuning) * static_cast<double>(rows.rows());
}
double pairs_of_round(const Tuning& tuning) { return 1500 * static_cast<double>(tuning.sample); }
// Cost of a pair in compare_with_all(): an estimate, twice that of a pair within a partition.
constexpr double compare_cost = 4;

// Neighbourhoods are drawn by the backend if it can, else by Neighborhoods.
std::uint64_t round_bytes(const Stream& stream, std::size_t rows, const Tuning& tuning) {
  const auto of_backend = stream.context.backend.ops.join_neighborhoods_bytes;
  return of_backend != nullptr ? of_backend(stream, rows, tuning.list, tuning.sample)
                               : Neighborhoods::bytes(rows, tuning.list, tuning.sample);
}

}  // namespace

// Chosen by the first table of docs/algorithms/knn-graph.md.
Tuning default_tuning(std::size_t degree, double recall) {
  Tuning tuning;
  tuning.list = std::max<std::size_t>(degree, 16);
  tuning.sample = std::clamp<std::size_t>(degree, 16, 32);
  tuning.overlap = recall <= 0.97 ? 8 : 12;
  tuning.partition_rows = recall <= 0.97 ? 2000 : 4000;
  tuning.exact_rows = static_cast<std::size_t>(2 * partition_pairs(tuning));
  tuning.max_compared_rows = static_cast<std::size_t>(partition_pairs(tuning) / 2 / compare_cost);
  return tuning;
}

std::uint64_t Builder::bytes(const Context& context, const RowsView& rows, const KnnGraphOptions& options,
                             const Tuning& tuning) {
  const auto stream = open_stream(context);
  const JoinCosts costs =
      dispatch(&Ops::join_costs, "join_costs", *stream,
               KnnCostsArgs{rows.dim(), tuning.list, options.metric, rows.type(), rows.type()});
  const PartitionOptions partitions = partition_options(rows, options.metric, tuning, 0);
  const std::uint64_t largest_group =
      std::max({std::min(rows.rows(), max_partition_rows), Neighborhoods::max_members(tuning.sample),
                candidates_of(tuning) + 1});
  const std::uint64_t lists = rows.rows() * (tuning.list * sizeof(NeighborEntry) + 2 * sizeof(std::uint32_t));
  return lists + rows.rows() * costs.bytes_per_row + costs.fixed_bytes +
         largest_group * costs.bytes_per_member +
         rows.rows() * options.degree * (sizeof(Id) + sizeof(float)) +
         RecallSample::bytes(rows, options.degree, tuning.measured) +
         std::max({tuning.overlap == 0 ? 0 : Partitions::bytes(context, rows, partitions),
                   round_bytes(*stream, rows.rows(), tuning),
                   compare_bytes(rows.rows(), candidates_of(tuning))}) +
         4096;
}

Builder::Builder(const Context& context, const RowsView& rows, const KnnGraphOptions& options,
                 const Tuning& tuning, const RecallSample* sample)
    : context_(context),
      rows_(rows),
      options_(options),
      tuning_(tuning),
      sample_(sample),
      stream_(open_stream(context)),
      order_(*context.state().budget, rows.rows()),
      place_of_(*context.state().budget, rows.rows()),
      lists_(*context.state().budget, checked_multiply(rows.rows(), tuning.list, "build_knn_graph")) {
  std::ranges::fill(lists_.span(), empty_entry);
}

double Builder::partitions_cost(const RowsView& rows, const KnnGraphOptions& options, const Tuning& tuning) {
  return Partitions::cost(rows, partition_options(rows, options.metric, tuning, 0)) +
         expected_pairs(tuning, rows);
}

double Builder::round_cost(const RowsView& rows, const Tuning& tuning) {
  return pairs_of_round(tuning) * static_cast<double>(rows.rows());
}

void Builder::join_partitions(const Context& context, std::uint64_t attempt) {
  const PartitionOptions chosen = partition_options(rows_, options_.metric, tuning_, attempt);
  Stages stages(context, "build_knn_graph");
  Partitions partitions(stages.next(Partitions::cost(rows_, chosen), expected_pairs(tuning_, rows_)), rows_,
                        chosen);
  if (state_ == nullptr) {
    partitions.order_rows(order_.span());
    start(nullptr);
  }
  choose_overlap(partitions, [](std::size_t, std::size_t) { return true; });
  join_groups(stages.next(1, 0), partitions.groups(order_.span()));
  fill_lists();
  stages.finish();
  spent_pairs_ += partition_pairs(tuning_, partitions) * static_cast<double>(rows_.rows());
}

void Builder::choose_overlap(Partitions& partitions,
                             const std::function<bool(std::size_t row, std::size_t other)>& may_join) const {
  if (sample_ == nullptr) return;
  constexpr std::optional<double> any_reach;
  OverlapChoice choice(*sample_, partitions.overlap(), {&any_reach, 1});
  for (std::size_t i = 0; i < sample_->size(); ++i)
    for (std::size_t j = 0; j < sample_->degree(); ++j) {
      const std::size_t row = sample_->row(i);
      const auto other = static_cast<std::size_t>(sample_->nearest(i)[j]);
      if (knows(row, other))
        choice.set_overlap(0, i, j, 0);
      else if (may_join(row, other))
        choice.set_overlap(0, i, j, shared_overlap(partitions.of_row(row), partitions.of_row(other)));
    }
  partitions.keep(choice.choose(options_.target_recall).rule.overlap);
}

bool Builder::knows(std::size_t row, std::size_t other) const {
  const auto list = lists_.span().subspan(std::size_t{place_of_[row]} * tuning_.list, tuning_.list);
  return std::ranges::any_of(list, [&](NeighborEntry entry) {
    return entry != empty_entry && number_of(entry) == place_of_[other];
  });
}

void Builder::join_groups(const Context& context, const Groups& groups) {
  ProgressMeter progress(context.state().options.progress, context.state().clock, "build_knn_graph",
                         groups.members.size());
  dispatch(&Ops::join_groups, "join_groups", *stream_, JoinGroupsArgs{*state_, groups, &progress});
  progress.finish();
}

void Builder::join(const Context& context, const Groups& groups) {
  if (state_ == nullptr) {
    std::iota(order_.span().begin(), order_.span().end(), 0U);
    start(nullptr);
  }
  join_groups(context, groups);
  fill_lists();
}

void Builder::join_sides(const Context& context, std::size_t left_rows, const InitialNeighbors& initial) {
  const PartitionOptions chosen = partition_options(rows_, options_.metric, tuning_, 0);
  Stages stages(context, "build_knn_graph");
  Partitions partitions(stages.next(Partitions::cost(rows_, chosen), expected_pairs(tuning_, rows_) / 2),
                        rows_, chosen);
  partitions.order_rows(order_.span());
  start(&initial);
  choose_overlap(partitions, [&](std::size_t row, std::size_t other) {
    return (row < left_rows) != (other < left_rows);
  });
  join_groups(stages.next(1, 0), partitions.groups_of_sides(order_.span(), left_rows));
  fill_lists();
  stages.finish();
  spent_pairs_ += partition_pairs(tuning_, partitions) / 2 * static_cast<double>(rows_.rows());
}

void Builder::begin(const InitialNeighbors& initial) {
  std::iota(order_.span().begin(), order_.span().end(), 0U);
  start(&initial);
}

void Builder::start(const InitialNeighbors* initial) {
  for (std::size_t place = 0; place < order_.size(); ++place)
    place_of_[order_[place]] = static_cast<std::uint32_t>(place);
  if (initial != nullptr) put_initial(*initial);
  centre_ = centre_of(*stream_, rows_, options_.metric);
  state_ = dispatch(&Ops::start_join, "start_join", *stream_,
                    StartJoinArgs{.rows = rows_,
                                  .order = order_.span(),
                                  .metric = options_.metric,
                                  .type = scan_type(*stream_, rows_, options_.metric),
                                  .centre = centre_,
                                  .degree = tuning_.list,
                                  .lists = lists_.span(),
                                  .has_neighbors = initial != nullptr});
}

void Builder::put_initial(const InitialNeighbors& initial) {
  context_.state().threads->for_each(divide_up(rows_.rows(), task_rows), [&](std::size_t task) {
    context_.state().cancel.check();
    std::vector<InitialNeighbor> found;
    for (std::size_t row = task * task_rows; row < std::min(rows_.rows(), (task + 1) * task_rows); ++row) {
      found.clear();
      initial(row, found);
      NEARWISE_ASSERT(found.size() <= tuning_.list);
      const auto list = lists_.span().subspan(std::size_t{place_of_[row]} * tuning_.list, found.size());
      std::ranges::transform(found, list.begin(), [&](const InitialNeighbor& neighbor) {
        return make_entry(sort_key(options_.metric, neighbor.distance), place_of_[neighbor.row], false);
      });
      std::ranges::sort(list);
    }
  });
}

void Builder::compare_with_all(const Context& context, std::span<const std::uint32_t> rows) {
  const Context::State& state = context.state();
  Buffer<std::uint8_t> is_compared(*state.budget, rows_.rows());
  std::ranges::fill(is_compared.span(), std::uint8_t{0});
  for (const std::uint32_t row : rows) is_compared[place_of_[row]] = 1;
  Buffer<std::uint32_t> members(*state.budget, compare_batch + max_partition_rows);
  std::vector<std::uint64_t> ends;
  std::vector<std::uint32_t> new_counts;
  std::size_t count = 0;
  const auto join = [&](bool bipartite) {
    if (ends.empty()) return;
    dispatch(&Ops::join_groups, "join_groups", *stream_,
             JoinGroupsArgs{*state_, {members.span().first(count), ends, new_counts, bipartite}});
    ends.clear();
    new_counts.clear();
    count = 0;
  };
  const auto add = [&](std::span<const std::uint32_t> some, std::span<const std::uint32_t> others,
                       bool bipartite) {
    for (const std::uint32_t row : some) members[count++] = place_of_[row];
    for (const std::uint32_t place : others) members[count++] = place;
    ends.push_back(count);
    new_counts.push_back(static_cast<std::uint32_t>(some.size()));
    if (count >= compare_batch) join(bipartite);
  };
  ProgressMeter progress(state.options.progress, state.clock, "build_knn_graph", rows_.rows());
  const auto part = [&](std::size_t first) {
    return rows.subspan(first, std::min(compared_chunk, rows.size() - first));
  };
  for (std::size_t first = 0; first < rows.size(); first += compared_chunk) add(part(first), {}, false);
  join(false);
  std::vector<std::uint32_t> others;
  const auto compare = [&] {
    for (std::size_t first = 0; first < rows.size(); first += compared_chunk) add(part(first), others, true);
    progress.add(others.size());
    others.clear();
  };
  // Pairs across chunks of `rows`, then all other rows.
  for (std::size_t first = 0; first < rows.size(); first += compared_chunk) {
    for (const std::uint32_t row : part(first)) others.push_back(place_of_[row]);
    for (std::size_t before = 0; before < first; before += compared_chunk) add(part(before), others, true);
    progress.add(others.size());
    others.clear();
  }
  for (std::size_t place = 0; place < rows_.rows(); ++place) {
    if (is_compared[place] == 0) others.push_back(static_cast<std::uint32_t>(place));
    if (others.size() == other_chunk) compare();
  }
  compare();
  join(true);
  progress.finish();
  spent_pairs_ += compare_cost * static_cast<double>(rows.size()) * static_cast<double>(rows_.rows());
}

std::size_t Builder::max_candidates() const { return std::min(candidates_of(tuning_), rows_.rows() - 1); }

void Builder::compare_candidates(const Context& context, std::span<const std::uint32_t> rows,
                                 const Candidates& candidates) {
  constexpr std::size_t part = 64;
  const Context::State& state = context.state();
  const std::size_t slot = max_candidates() + 1;
  Buffer<std::uint32_t> members(*state.budget, candidate_batch * slot);
  std::vector<std::uint64_t> ends;
  ProgressMeter progress(state.options.progress, state.clock, "build_knn_graph", rows.size());
  for (std::size_t first = 0; first < rows.size(); first += candidate_batch) {
    const auto batch = rows.subspan(first, std::min(candidate_batch, rows.size() - first));
    ends.assign(batch.size(), 0);
    state.threads->for_each(divide_up(batch.size(), part), [&](std::size_t task) {
      state.cancel.check();
      std::vector<std::uint32_t> found;
      for (std::size_t i = task * part; i < std::min(batch.size(), (task + 1) * part); ++i) {
        found.clear();
        candidates(batch[i], found);
        std::uint32_t* const group = members.data() + i * slot;
        std::size_t count = 0;
        group[count++] = place_of_[batch[i]];
        for (const std::uint32_t row : found) {
          if (count == slot) break;
          if (std::find(group, group + count, place_of_[row]) == group + count)
            group[count++] = place_of_[row];
        }
        ends[i] = count;
      }
    });
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      std::copy_n(members.data() + i * slot, ends[i], members.data() + sum);
      ends[i] = sum += ends[i];
    }
    const std::vector<std::uint32_t> new_counts(batch.size(), 1);
    dispatch(&Ops::join_groups, "join_groups", *stream_,
             JoinGroupsArgs{*state_, {members.span().first(sum), ends, new_counts}});
    progress.add(batch.size());
  }
  progress.finish();
  spent_pairs_ += pairs_of_round(tuning_) * static_cast<double>(rows.size());
}

// Rows of small partitions have too few neighbours: they are compared with the rows at the following places.
void Builder::fill_lists() {
  constexpr std::size_t batch = 4096;
  const std::size_t others = std::min(tuning_.list, rows_.rows() - 1);
  if (others == 0) return;
  std::vector<std::uint32_t> members;
  std::vector<std::uint64_t> ends;
  const auto join = [&] {
    const std::vector<std::uint32_t> new_counts(ends.size(), 1);
    dispatch(&Ops::join_groups, "join_groups", *stream_,
             JoinGroupsArgs{*state_, {members, ends, new_counts}});
    members.clear();
    ends.clear();
  };
  for (std::size_t place = 0; place < rows_.rows(); ++place) {
    if (lists_[place * tuning_.list + others - 1] != empty_entry) continue;
    for (std::size_t i = 0; i <= others; ++i)
      members.push_back(static_cast<std::uint32_t>((place + i) % rows_.rows()));
    ends.push_back(members.size());
    if (ends.size() == batch) join();
  }
  if (!ends.empty()) join();
}

void Builder::descend(const Context& context) {
  const Context::State& state = context.state();
  const Random random = random_stream(context_.seed(), Draw::neighbors, rounds_++);
  ProgressMeter progress(state.options.progress, state.clock, "build_knn_graph", rows_.rows());
  if (state.backend.ops.join_neighborhoods != nullptr)
    dispatch(&Ops::join_neighborhoods, "join_neighborhoods", *stream_,
             JoinNeighborhoodsArgs{*state_, tuning_.sample, random, &progress});
  else
    join_neighborhoods(random, progress);
  progress.finish();
  spent_pairs_ += pairs_of_round(tuning_) * static_cast<double>(rows_.rows());
}

void Builder::join_neighborhoods(const Random& random, ProgressMeter& progress) {
  Neighborhoods around(context_, lists_.span(), tuning_.list, tuning_.sample, random);
  for (std::size_t first = 0; first < rows_.rows(); first += Neighborhoods::batch_rows) {
    dispatch(&Ops::join_groups, "join_groups", *stream_, JoinGroupsArgs{*state_, around.groups(first)});
    progress.add(std::min(Neighborhoods::batch_rows, rows_.rows() - first));
  }
}

std::uint64_t Builder::updates() const {
  return static_cast<std::uint64_t>(std::ranges::count_if(
      lists_.span(), [](NeighborEntry entry) { return entry != empty_entry && is_new(entry); }));
}

std::vector<std::uint32_t> Builder::changing_rows() const {
  std::vector<std::uint32_t> found;
  for (std::size_t row = 0; row < rows_.rows(); ++row) {
    const auto list = lists_.span().subspan(std::size_t{place_of_[row]} * tuning_.list, options_.degree);
    if (std::ranges::any_of(list, [](NeighborEntry entry) { return entry != empty_entry && is_new(entry); }))
      found.push_back(static_cast<std::uint32_t>(row));
  }
  return found;
}

RecallEstimate Builder::recall(const RecallSample& sample) const {
  return sample.estimate([&](std::uint32_t row) {
    const auto list = lists_.span().subspan(std::size_t{place_of_[row]} * tuning_.list, options_.degree);
    std::vector<Id> ids;
    for (const NeighborEntry entry : list)
      if (entry != empty_entry) ids.push_back(Id{order_[number_of(entry)]});
    return ids;
  });
}

Neighbors Builder::finish() const {
  const std::size_t degree = options_.degree;
  Neighbors result{Matrix<Id>(rows_.rows(), degree), Matrix<float>(rows_.rows(), degree)};
  context_.state().threads->for_each(divide_up(rows_.rows(), task_rows), [&](std::size_t task) {
    std::vector<NeighborEntry> entries(tuning_.list);
    for (std::size_t row = task * task_rows; row < std::min(rows_.rows(), (task + 1) * task_rows); ++row) {
      const auto list = lists_.span().subspan(std::size_t{place_of_[row]} * tuning_.list, tuning_.list);
      // Ties are ordered by row number, not by place.
      std::ranges::transform(list, entries.begin(), [&](NeighborEntry entry) {
        return entry == empty_entry ? entry : make_entry(key_of(entry), order_[number_of(entry)], false);
      });
      std::ranges::sort(entries);
      for (std::size_t i = 0; i < degree; ++i) {
        const bool real = entries[i] != empty_entry;
        result.ids(row, i) = real ? Id{number_of(entries[i])} : no_id;
        // Adding zero turns -0 into +0, as exact search reports products.
        result.distances(row, i) = real ? distance_of_key(options_.metric, key_of(entries[i])) + 0.0F
                                        : padding_distance(options_.metric);
      }
    }
  });
  return result;
}

}  // namespace nearwise::graph
