#include "graph/builder.h"

#include <algorithm>

#include "core/checked.h"
#include "core/distance.h"
#include "graph/cells.h"
#include "graph/neighborhoods.h"
#include "graph/random_streams.h"
#include "ops/exact_search.h"

namespace nearwise::graph {
namespace {

constexpr std::size_t task_rows = 4096;

CellOptions cell_options(const RowsView& rows, Metric metric, const Tuning& tuning, std::uint64_t attempt) {
  return {.cells = std::max<std::size_t>(1, rows.rows() * tuning.overlap / tuning.cell_rows),
          .overlap = tuning.overlap,
          .metric = metric,
          .attempt = attempt};
}

// What a row costs in pairs of exact search, each multiplied once. Measured on SIFT from 50,000 rows to a million and on text
// (384 dimensions, 100,000 rows), 2 cores with AMX, 2026-11-15: a pair of a cell takes 1.6 to 3 times as long.
double pairs_of_cells(const Tuning& tuning) {
  return 2 * static_cast<double>(tuning.overlap) * static_cast<double>(tuning.cell_rows);
}
double pairs_of_round(const Tuning& tuning) { return 1500 * static_cast<double>(tuning.sample); }

}  // namespace

// Recall of the cells alone on SIFT, 1 million rows, and its price (CPU seconds of 2 cores with AMX beside other load,
// 2026-11-15): overlap 8, 2000 rows 0.971 for 18 to 22; 8, 4000 0.985 for 22; 12, 4000 0.996 for 31. A first round of descent
// costs 11 to 13 and takes 0.832 to 0.902, or 0.970 to 0.985.
Tuning usual_tuning(std::size_t degree, double recall) {
  Tuning tuning;
  tuning.list = std::max<std::size_t>(degree, 16);
  tuning.sample = std::clamp<std::size_t>(degree, 16, 32);
  tuning.overlap = recall <= 0.97 ? 8 : 12;
  tuning.cell_rows = recall <= 0.97 ? 2000 : 4000;
  tuning.exact_rows = static_cast<std::size_t>(2 * pairs_of_cells(tuning));
  return tuning;
}

std::uint64_t Builder::bytes(const Context& context, const RowsView& rows, const KnnGraphOptions& options,
                             const Tuning& tuning) {
  const auto stream = open_stream(context);
  const JoinCosts costs =
      dispatch(&Ops::join_costs, "join_costs", *stream,
               KnnCostsArgs{rows.dim(), tuning.list, options.metric, rows.type(), rows.type(), false});
  const CellOptions cells = cell_options(rows, options.metric, tuning, 0);
  const std::uint64_t largest_group =
      std::max(std::min(rows.rows(), most_cell_rows), Neighborhoods::most_members(tuning.sample));
  const std::uint64_t lists = rows.rows() * (tuning.list * sizeof(NeighborEntry) + 2 * sizeof(std::uint32_t));
  return lists + rows.rows() * costs.bytes_per_row + costs.fixed_bytes +
         largest_group * costs.bytes_per_member +
         rows.rows() * options.degree * (sizeof(Id) + sizeof(float)) +
         RecallSample::bytes(rows, options.degree, tuning.measured) +
         std::max(Cells::bytes(context, rows, cells),
                  Neighborhoods::bytes(rows.rows(), tuning.list, tuning.sample)) +
         4096;
}

Builder::Builder(const Context& context, const RowsView& rows, const KnnGraphOptions& options,
                 const Tuning& tuning)
    : context_(context),
      rows_(rows),
      options_(options),
      tuning_(tuning),
      stream_(open_stream(context)),
      order_(*context.state().budget, rows.rows()),
      place_of_(*context.state().budget, rows.rows()),
      lists_(*context.state().budget, checked_multiply(rows.rows(), tuning.list, "build_knn_graph")) {
  std::ranges::fill(lists_.span(), empty_entry);
}

void Builder::join_cells(std::uint64_t attempt) {
  Cells cells(context_, rows_, cell_options(rows_, options_.metric, tuning_, attempt));
  if (state_ == nullptr) {
    cells.order_rows(order_.span());
    for (std::size_t place = 0; place < order_.size(); ++place)
      place_of_[order_[place]] = static_cast<std::uint32_t>(place);
    centre_ = centre_of(*stream_, rows_, options_.metric);
    state_ = dispatch(&Ops::start_join, "start_join", *stream_,
                      StartJoinArgs{.rows = rows_,
                                    .order = order_.span(),
                                    .metric = options_.metric,
                                    .bytes = are_bytes(*stream_, rows_.slice(0, 0), rows_, options_.metric),
                                    .centre = centre_,
                                    .degree = tuning_.list,
                                    .lists = lists_.span()});
  }
  dispatch(&Ops::join_groups, "join_groups", *stream_, JoinGroupsArgs{*state_, cells.groups(order_.span())});
  fill_lists();
  spent_pairs_ += pairs_of_cells(tuning_) * static_cast<double>(rows_.rows());
}

// Rows of small cells have met too few others: they meet those that lie behind them.
void Builder::fill_lists() {
  constexpr std::size_t batch = 4096;
  const std::size_t others = std::min(tuning_.list, rows_.rows() - 1);
  std::vector<std::uint32_t> members;
  std::vector<std::uint64_t> ends;
  const auto join = [&] {
    const std::vector<std::uint32_t> fresh(ends.size(), 1);
    dispatch(&Ops::join_groups, "join_groups", *stream_, JoinGroupsArgs{*state_, {members, ends, fresh}});
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

void Builder::descend() {
  const Context::State& state = context_.state();
  Neighborhoods around(context_, lists_.span(), tuning_.list, tuning_.sample,
                       random_stream(context_.seed(), Draw::neighbors, rounds_++));
  ProgressMeter progress(state.options.progress, state.clock, "build_knn_graph", rows_.rows());
  for (std::size_t first = 0; first < rows_.rows(); first += Neighborhoods::batch_rows) {
    dispatch(&Ops::join_groups, "join_groups", *stream_, JoinGroupsArgs{*state_, around.groups(first)});
    progress.add(std::min(Neighborhoods::batch_rows, rows_.rows() - first));
  }
  progress.finish();
  spent_pairs_ += pairs_of_round(tuning_) * static_cast<double>(rows_.rows());
}

std::uint64_t Builder::updates() const {
  return static_cast<std::uint64_t>(std::ranges::count_if(
      lists_.span(), [](NeighborEntry entry) { return entry != empty_entry && is_fresh(entry); }));
}

RecallEstimate Builder::recall(const RecallSample& sample) const {
  std::vector<std::size_t> found(sample.size());
  const std::size_t most = std::min(options_.degree, tuning_.list);
  for (std::size_t i = 0; i < sample.size(); ++i) {
    const auto list = lists_.span().subspan(std::size_t{place_of_[sample.row(i)]} * tuning_.list, most);
    found[i] = static_cast<std::size_t>(std::ranges::count_if(
        list, [&](NeighborEntry entry) { return entry != empty_entry && key_of(entry) <= sample.limit(i); }));
  }
  return sample.estimate(found);
}

Neighbors Builder::finish() const {
  const std::size_t degree = options_.degree;
  Neighbors result{Matrix<Id>(rows_.rows(), degree), Matrix<float>(rows_.rows(), degree)};
  context_.state().threads->for_each(divide_up(rows_.rows(), task_rows), [&](std::size_t task) {
    std::vector<NeighborEntry> entries(tuning_.list);
    for (std::size_t row = task * task_rows; row < std::min(rows_.rows(), (task + 1) * task_rows); ++row) {
      const auto list = lists_.span().subspan(std::size_t{place_of_[row]} * tuning_.list, tuning_.list);
      // By row instead of place: the order of ties.
      std::ranges::transform(list, entries.begin(), [&](NeighborEntry entry) {
        return entry == empty_entry ? entry : make_entry(key_of(entry), order_[number_of(entry)], false);
      });
      std::ranges::sort(entries);
      for (std::size_t i = 0; i < degree; ++i) {
        const bool real = entries[i] != empty_entry;
        result.ids(row, i) = real ? Id{number_of(entries[i])} : no_id;
        // Adding zero makes -0 +0, as products are reported.
        result.distances(row, i) = real ? distance_of_key(options_.metric, key_of(entries[i])) + 0.0F
                                        : padding_distance(options_.metric);
      }
    }
  });
  return result;
}

}  // namespace nearwise::graph
