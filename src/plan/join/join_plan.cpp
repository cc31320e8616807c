// plan_threshold_join and plan_dedup: sizes, identity, tasks and their estimated costs.
#include <fmt/format.h>
#include <xxhash.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/check.h"
#include "core/checked.h"
#include "core/math/random.h"
#include "core/memory.h"
#include "duplicates/group_duplicates.h"
#include "graph/row_sample.h"
#include "io/files/read_ahead.h"
#include "nearwise/exact.h"
#include "ops/finite_rows.h"
#include "ops/knn_plan.h"
#include "plan/engine/plan_state.h"
#include "plan/join/join_work.h"
#include "plan/partition/graph_costs.h"

namespace nearwise {
namespace plan {
namespace {

// Increased when the same options give other intermediate files.
constexpr int version_of_join = 1;

// 128 blocks take 8256 joins.
constexpr std::size_t max_join_blocks = 128;
constexpr std::size_t min_join_rows = 1024;
// Bounds the work that an interruption loses: 10^12 pairs, where files do not need larger blocks.
constexpr std::size_t max_join_rows = 1'000'000;
// Tiles of an exact search, and small allocations.
constexpr std::uint64_t join_bytes = std::uint64_t{16} << 20;
constexpr std::uint64_t work_file_bytes = 3 * 4096 + 4096;

// A block takes at most half of the memory as packed queries, the same on every machine.
std::uint64_t packed_bytes(const RowsView& rows) { return rows.dim() * sizeof(float) + 256; }

// Equal blocks: a smaller last one would not save a join.
std::size_t block_rows_within(std::uint64_t limit, const RowsView& rows) {
  const std::uint64_t usable = usable_memory(limit);
  const std::uint64_t fitting = usable <= join_bytes ? 0 : (usable - join_bytes) / 2 / packed_bytes(rows);
  const std::size_t most = std::max(max_join_rows, divide_up(rows.rows(), max_join_blocks));
  const std::size_t blocks =
      divide_up(rows.rows(), std::clamp<std::size_t>(fitting, 1, std::min(most, rows.rows())));
  return divide_up(rows.rows(), blocks);
}

std::uint64_t grouping_memory(const JoinWork& work) {
  if (!work.dedup) return 0;
  return duplicates::grouping_bytes(work.rows, *work.dedup) + work.scores.size() * sizeof(double);
}

// About the smallest limit that suffices.
std::uint64_t least_join_limit(const JoinWork& work, const RowsView& rows) {
  const std::size_t least = std::max(min_join_rows, divide_up(rows.rows(), max_join_blocks));
  const std::uint64_t memory = std::max(2 * std::min(least, rows.rows()) * packed_bytes(rows) + join_bytes,
                                        grouping_memory(work) + join_bytes / 4);
  return static_cast<std::uint64_t>(std::ceil(static_cast<double>(memory) / share_of_limit)) + 1;
}

JoinWork checked_work(const Context& context, JoinWork work) {
  const char* const operation = work.operation();
  require(!work.files.work.empty() && !work.files.output.empty(), "{}: expected a work folder and an output",
          operation);
  require(context.place().kind == DeviceKind::cpu, "{}: expected a context on the host, got {}", operation,
          name(context.place()));
  require(context.memory_limit() != 0, "{}: the context must have a memory limit", operation);
  require(std::isfinite(work.threshold), "{}: expected a finite threshold, got {}", operation,
          work.threshold);
  const VectorFile file = VectorFile::open(work.files.vectors);
  const RowsView rows = file.rows();
  require(rows.rows() >= 1, "{}: expected at least 1 row, got 0", operation);
  require(rows.rows() <= max_shard_rows, "{}: rows must be at most {}, got {}", operation, max_shard_rows,
          rows.rows());
  work.rows = rows.rows();
  if (work.dedup) duplicates::check_options(*work.dedup, work.rows);
  const std::uint64_t least = least_join_limit(work, rows);
  if (least > context.memory_limit()) refuse_limit(operation, context.memory_limit(), least);
  work.block_rows = block_rows_within(context.memory_limit(), rows);
  return work;
}

// From a sample. Seconds to compare a pair, and how many there are within the threshold: at least one for
// each row.
struct JoinCosts {
  double pair = 0;
  double merged = 0;
  double found = 0;
};

JoinCosts measure_join(const Context& context, const JoinWork& work, const RowsView& rows) {
  constexpr std::size_t max_sample = 8192;
  constexpr std::size_t max_compared = 2048;
  constexpr std::size_t max_queries = 64;
  const Context silent = context.without_progress();
  const graph::RowSample sample(silent, rows, std::min(rows.rows(), max_sample), Random(0));
  if (const std::size_t bad = first_not_finite(silent, sample.view()); bad < sample.view().rows())
    check_finite(work.operation(), silent, rows.slice(sample.number(bad), 1), sample.number(bad));
  const GraphCosts costs = measure_costs(silent, sample.view(), work.metric);
  const RowsView base = sample.view().slice(0, std::min(rows.rows(), max_compared));
  const RowsView queries = base.slice(0, std::min(base.rows(), max_queries));
  const RangeNeighbors near = range_search(silent, queries, base, work.threshold, {.metric = work.metric});
  std::size_t others = 0;
  for (std::size_t query = 0; query < queries.rows(); ++query)
    for (std::size_t i = near.offsets[query]; i < near.offsets[query + 1]; ++i)
      others += near.ids[i] != static_cast<Id>(query) ? 1 : 0;
  const auto compared = static_cast<double>(queries.rows() * std::max<std::size_t>(base.rows() - 1, 1));
  const auto all = static_cast<double>(rows.rows());
  return {.pair = costs.pair,
          .merged = costs.merged,
          .found = std::max(all, static_cast<double>(others) / compared * all * (all - 1) / 2)};
}

std::uint64_t as_bytes_of(double bytes) { return static_cast<std::uint64_t>(std::ceil(bytes)); }

// Work files, in bytes: 8 for each pair, which sides have twice, and 8 for each row.
PlannedTask cost_of_join(const JoinWork& work, const JoinCosts& costs, const RowsView& rows, std::size_t left,
                         std::size_t right) {
  const auto left_rows = static_cast<double>(work.block(left).count);
  const double compared =
      left == right ? left_rows * left_rows / 2 : left_rows * static_cast<double>(work.block(right).count);
  const double share = 2 * compared / (static_cast<double>(work.rows) * static_cast<double>(work.rows));
  const std::uint64_t row_bytes = rows.dim() * element_size(rows.type());
  PlannedTask task;
  task.read_bytes = (work.block(left).count + (left == right ? 0 : work.block(right).count)) * row_bytes;
  task.written_bytes = as_bytes_of(8 * share * costs.found + 8 * left_rows) + work_file_bytes;
  task.seconds = costs.pair * compared;
  return task;
}

PlannedTask cost_of_sides(const JoinWork& work, const JoinCosts& costs, std::size_t block) {
  const auto rows = static_cast<double>(work.block(block).count);
  const double sides = 2 * costs.found * rows / static_cast<double>(work.rows);
  PlannedTask task;
  task.read_bytes = as_bytes_of(8 * sides + 8 * rows * static_cast<double>(work.blocks()));
  task.written_bytes = as_bytes_of(8 * sides + 8 * rows) + work_file_bytes;
  task.seconds = costs.merged * (sides + rows);
  return task;
}

PlannedTask cost_of_publish(const JoinWork& work, const JoinCosts& costs) {
  const auto rows = static_cast<double>(work.rows);
  PlannedTask task;
  task.read_bytes = as_bytes_of((work.dedup ? 16 : 24) * costs.found + 8 * rows);
  task.written_bytes =
      as_bytes_of(work.dedup ? 28 * rows : 8 * rows + 12 * costs.found) + 2 * work_file_bytes;
  task.seconds = costs.merged * (costs.found + rows);
  return task;
}

void prefetch_block(const JoinWork& work, std::size_t block, const std::stop_token& stop) {
  const VectorFile file = VectorFile::open(work.files.vectors);
  if (file.rows().rows() != work.rows) return;  // the reader reports it
  const RowsView rows = file.rows().slice(work.block(block).first, work.block(block).count);
  ask_for(rows.row(0), (rows.rows() - 1) * rows.stride_bytes() + rows.dim() * element_size(rows.type()),
          stop);
}

nlohmann::json identity_of_join(const Context& context, const JoinWork& work, const RowsView& rows) {
  nlohmann::json identity = {{"kind", work.dedup ? "dedup" : "threshold_join"},
                             {"version", version_of_join},
                             {"rows", rows.rows()},
                             {"dim", rows.dim()},
                             {"type", name(rows.type())},
                             {"checksum", sampled_checksum(work.files.vectors)},
                             {"metric", name(work.metric)},
                             {"threshold", work.threshold},
                             {"memory_limit", context.memory_limit()},
                             {"seed", context.seed()}};
  if (work.dedup) {
    identity["grouping"] = name(work.dedup->grouping);
    identity["keep"] = name(work.dedup->keep);
    identity["scores"] =
        fmt::format("{:016x}", XXH3_64bits(work.scores.data(), work.scores.size() * sizeof(double)));
  }
  return identity;
}

class JoinTasks {
 public:
  JoinTasks(Plan::State& state, std::shared_ptr<const JoinWork> work)
      : state_(state), work_(std::move(work)) {}

  template <typename Function>
  Task& add(std::string name, std::vector<std::string> after, PlannedTask cost, const Function& function) {
    Task task;
    task.output = work_->file_of(name);
    task.planned = std::move(cost);
    task.planned.name = std::move(name);
    task.planned.after = std::move(after);
    // Joins read vectors, and those of another file must not be combined with these.
    task.planned.after.emplace_back(input_name);
    task.work = [work = work_, function](const Context& context) { function(context, *work); };
    state_.tasks.push_back(std::move(task));
    return state_.tasks.back();
  }

 private:
  Plan::State& state_;
  std::shared_ptr<const JoinWork> work_;
};

}  // namespace

std::string join_name(std::size_t left, std::size_t right) {
  return fmt::format("join-{:04}-{:04}", left, right);
}
std::string sides_name(std::size_t block) { return fmt::format("sides-{:04}", block); }

JoinWork join_work(const Context& context, const PlanFiles& files, float threshold,
                   const JoinPlanOptions& options) {
  return checked_work(
      context,
      {.files = files, .threshold = threshold, .metric = options.metric, .provenance = options.provenance});
}

JoinWork dedup_work(const Context& context, const PlanFiles& files, float threshold,
                    const DedupPlanOptions& options) {
  JoinWork work = checked_work(context, {.files = files,
                                         .threshold = threshold,
                                         .metric = options.dedup.metric,
                                         .dedup = options.dedup,
                                         .scores = {options.dedup.scores.begin(), options.dedup.scores.end()},
                                         .provenance = options.provenance});
  work.dedup->scores = {};
  return work;
}

Plan plan_of(const Context& context, JoinWork given) {
  const auto work = std::make_shared<const JoinWork>(std::move(given));
  const VectorFile file = VectorFile::open(work->files.vectors);
  const RowsView rows = file.rows();
  auto state = std::make_unique<Plan::State>();
  state->folder = work->files.work;
  state->output = work->files.output;
  state->vectors = work->files.vectors;
  state->memory_limit = context.memory_limit();
  state->least_limit = least_join_limit(*work, rows);
  state->seed = context.seed();
  state->identity = identity_of_join(context, *work, rows);

  const JoinCosts costs = measure_join(context, *work, rows);
  state->tasks.push_back(input_task(work->files, rows));
  JoinTasks tasks(*state, work);
  std::vector<std::string> joins;
  for (std::size_t left = 0; left < work->blocks(); ++left)
    for (std::size_t right = left; right < work->blocks(); ++right) {
      Task& task = tasks.add(
          join_name(left, right), {}, cost_of_join(*work, costs, rows, left, right),
          [left, right](const Context& own, const JoinWork& of) { join_blocks(own, of, left, right); });
      task.planned.memory_bytes = context.memory_limit();  // exact search adapts to it
      task.read_ahead = [work, right](const std::stop_token& stop) { prefetch_block(*work, right, stop); };
      joins.push_back(task.planned.name);
    }
  std::vector<std::string> last = joins;
  if (work->dedup) {
    last.clear();
    for (std::size_t block = 0; block < work->blocks(); ++block) {
      std::vector<std::string> inputs;
      for (std::size_t other = 0; other < work->blocks(); ++other)
        inputs.push_back(join_name(std::min(block, other), std::max(block, other)));
      Task& task =
          tasks.add(sides_name(block), std::move(inputs), cost_of_sides(*work, costs, block),
                    [block](const Context& own, const JoinWork& of) { gather_sides(own, of, block); });
      task.planned.memory_bytes = context.memory_limit();
      last.push_back(task.planned.name);
    }
  }
  Task& finish = tasks.add(finish_join_name, std::move(last), cost_of_publish(*work, costs),
                           work->dedup ? publish_dedup : publish_pairs);
  finish.planned.memory_bytes = grouping_memory(*work);
  finish.output = work->files.output;
  return Plan(std::move(state));
}

}  // namespace plan

Plan plan_threshold_join(const Context& context, const PlanFiles& files, float threshold,
                         const JoinPlanOptions& options) {
  return plan::plan_of(context, plan::join_work(context, files, threshold, options));
}

Plan plan_dedup(const Context& context, const PlanFiles& files, float threshold,
                const DedupPlanOptions& options) {
  return plan::plan_of(context, plan::dedup_work(context, files, threshold, options));
}

}  // namespace nearwise
