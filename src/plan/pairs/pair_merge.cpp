// build: the graph of a shard. merge: compares two shards; their rows keep the best neighbours so far.
#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <vector>

#include "backend/context_state.h"
#include "core/checked.h"
#include "core/distance.h"
#include "graph/change/change.h"
#include "io/container/container_writer.h"
#include "ops/finite_rows.h"
#include "ops/gather_rows.h"
#include "plan/pairs/pair_work.h"

namespace nearwise::plan {
namespace {

constexpr std::size_t task_rows = 1024;
// Share of the recall slack (1 - target) that a merge may use. Half of a merge's neighbours are known before
// it, so that the whole graph loses more than each merge: with all of it, merges at 0.95 gave 0.965 for 4
// shards and 0.956 for 8 (synthetic, 128 dimensions, 62,500 rows per shard, 2026-11-16).
constexpr double pair_slack = 0.7;

std::uint64_t result_bytes(const RowsView& rows, const GraphWork& work) {
  return rows.rows() * work.options.degree * (sizeof(Id) + sizeof(float));
}

// Two shards, concatenated in memory.
struct Pair {
  const GraphWork& work;
  Pairing shards;

  std::size_t left_rows() const { return work.shape.rows_of(shards.left); }
  std::size_t rows() const { return left_rows() + work.shape.rows_of(shards.right); }
  // The row number in the file of a concatenated row.
  std::uint32_t in_file(Id row) const {
    const auto place = static_cast<std::size_t>(row);
    return static_cast<std::uint32_t>(place < left_rows()
                                          ? work.shape.first_row(shards.left) + place
                                          : work.shape.first_row(shards.right) + place - left_rows());
  }
};

// The graph of the union, starting from the graphs of the shards.
Neighbors find(const Context& context, const Pair& pair, const RowsView& rows) {
  const GraphWork& work = pair.work;
  const MergedBlock left(work, pair.shards.left, build_shard_name(pair.shards.left));
  const MergedBlock right(work, pair.shards.right, build_shard_name(pair.shards.right));
  const std::size_t left_rows = pair.left_rows();
  const auto initial = [&](std::size_t row, std::vector<graph::InitialNeighbor>& found) {
    const bool is_left = row < left_rows;
    const MergedBlock& own = is_left ? left : right;
    const std::size_t place = is_left ? row : row - left_rows;
    const std::size_t first_row = work.shape.first_row(is_left ? pair.shards.left : pair.shards.right);
    for (std::size_t i = 0; i < own.ids.cols() && own.ids(place, i) != no_row; ++i) {
      const std::size_t other = own.ids(place, i) - first_row;
      if (other >= own.ids.rows())
        fail(ErrorCode::corrupt, "{}: a neighbour is in another shard", own.reader.source());
      found.push_back(
          {static_cast<std::uint32_t>(other + (is_left ? 0 : left_rows)), own.distances(place, i)});
    }
  };
  const MergedBlock& larger = left_rows <= rows.rows() - left_rows ? right : left;
  const graph::Sides sides = {.left_rows = left_rows,
                              .initial = initial,
                              .is_exact = count_in(larger.reader, "exact_rows", larger.ids.rows()) != 0};
  return graph::merge_sides("plan_graph", context, rows, sides, shard_options(work),
                            pair_tuning(work.options))
      .neighbors;
}

// Writes the best neighbours of one side, earlier and new ones. Returns the number of entries.
std::uint64_t write_side(const Context& context, const Pair& pair, bool is_left, const MergedBlock& before,
                         const Neighbors& found, ContainerWriter& writer) {
  const std::size_t degree = pair.work.options.degree;
  const Metric metric = pair.work.options.metric;
  const std::size_t first = is_left ? 0 : pair.left_rows();
  const std::size_t rows = before.ids.rows();
  Buffer<std::uint32_t> ids(*context.state().budget, rows * degree);
  Buffer<float> distances(*context.state().budget, rows * degree);
  std::atomic<std::uint64_t> count = 0;
  context.state().threads->for_each(divide_up(rows, task_rows), [&](std::size_t task) {
    context.state().cancel.check();
    std::vector<NeighborEntry> entries;
    for (std::size_t row = task * task_rows; row < std::min(rows, (task + 1) * task_rows); ++row) {
      entries.clear();
      append_entries(metric, before.ids.row(row), before.distances.row(row), true, entries);
      for (std::size_t i = 0; i < degree; ++i)
        if (const Id id = found.ids(first + row, i); id != no_id)
          entries.push_back(
              make_entry(sort_key(metric, found.distances(first + row, i)), pair.in_file(id), true));
      count += put_best(metric, entries, ids.span().subspan(row * degree, degree),
                        distances.span().subspan(row * degree, degree));
    }
  });
  const std::string prefix = is_left ? "left_" : "right_";
  writer.write_section(prefix + "ids", MatrixView<const std::uint32_t>(ids.data(), rows, degree));
  writer.write_section(prefix + "distances", MatrixView<const float>(distances.data(), rows, degree));
  return count;
}

}  // namespace

KnnGraphOptions shard_options(const GraphWork& work) {
  KnnGraphOptions options = work.graph_options();
  options.target_recall = 1 - pair_slack * (1 - options.target_recall);
  return options;
}
graph::Tuning shard_tuning(const GraphPlanOptions& options) {
  return graph::default_tuning(options.degree, options.target_recall);
}
graph::Tuning pair_tuning(const GraphPlanOptions& options) {
  return graph::change_tuning(options.degree, options.target_recall);
}

void build_shard(const Context& context, const GraphWork& work, std::size_t shard) {
  const PlanInput input = work.input(context);
  const std::size_t first_row = work.shape.first_row(shard);
  const RowsView rows = input.slice(first_row, work.shape.rows_of(shard));
  check_finite("plan_graph", context, rows, first_row);
  const KnnGraph built = graph::build(context, rows, shard_options(work), shard_tuning(work.options));
  const Reservation reservation(*context.state().budget, result_bytes(rows, work));

  const std::size_t degree = work.options.degree;
  ContainerWriter writer(work.file_of(build_shard_name(shard)), "graph_shard");
  writer.begin_section("ids", container::Element::u32, {.columns = degree});
  std::vector<std::uint32_t> ids(degree);
  std::uint64_t entries = 0;
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    for (std::size_t i = 0; i < degree; ++i) {
      const Id id = built.neighbors.ids(row, i);
      ids[i] = id == no_id ? no_row : static_cast<std::uint32_t>(first_row + static_cast<std::size_t>(id));
      entries += id == no_id ? 0 : 1;
    }
    writer.append(std::as_bytes(std::span(ids)));
  }
  writer.write_section("distances", built.neighbors.distances.view());
  const bool exact = built.report.method == GraphMethod::exact;
  writer.write_metadata({{"updates", entries}, {"exact_rows", exact ? rows.rows() : 0}});
  writer.commit();
}

void merge_pair(const Context& context, const GraphWork& work, std::size_t round, const Pairing& pairing) {
  const Pair pair = {work, pairing};
  const auto before = [&](std::size_t shard) {
    const ShardVersion version = version_before(work, shard, round);
    return MergedBlock(work, shard, version.task, version.prefix);
  };
  Neighbors found;
  Reservation reservation;
  {
    const PlanInput input = work.input(context);
    const auto row_at = [&](std::size_t place) { return pair.in_file(static_cast<Id>(place)); };
    const GatheredRows rows(context, input.rows_at(pair.rows(), row_at), pair.rows(), [&](std::size_t place) {
      return PlacedRow{.row = row_at(place), .place = place};
    });
    found = find(context, pair, rows.view());
    reservation = Reservation(*context.state().budget, result_bytes(rows.view(), work));
  }
  ContainerWriter writer(work.file_of(merge_pair_name(pairing)), "graph_pair");
  const std::uint64_t left = write_side(context, pair, true, before(pairing.left), found, writer);
  const std::uint64_t right = write_side(context, pair, false, before(pairing.right), found, writer);
  writer.write_metadata({{"left_updates", left}, {"right_updates", right}});
  writer.commit();
}

}  // namespace nearwise::plan
