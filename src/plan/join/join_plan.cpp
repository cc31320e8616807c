// plan_threshold_join and plan_dedup: sizes, identity, tasks and their estimated costs.
#include <fmt/format.h>
#include <xxhash.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/check.h"
#include "core/checked.h"
#include "core/memory.h"
#include "duplicates/group_duplicates.h"
#include "io/files/read_ahead.h"
#include "ops/knn_plan.h"
#include "plan/engine/plan_state.h"
#include "plan/join/join_costs.h"
#include "plan/join/join_work.h"
#include "plan/join/partition_files.h"
#include "plan/tasks/graph_work.h"

namespace nearwise {
namespace plan {
namespace {

// Increased when the same options give other intermediate files.
constexpr int version_of_join = 2;

// 128 blocks take 8256 joins.
constexpr std::size_t max_join_blocks = 128;
constexpr std::size_t min_join_rows = 1024;
// Bounds the work that an interruption loses: 10^12 pairs, where files do not need larger blocks.
constexpr std::size_t max_join_rows = 1'000'000;

// A block takes at most half of the memory as packed queries. Equal blocks: a smaller last one would not save
// a join.
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
  choose_method(context, rows, work);
  return work;
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
                             {"method", name(work.method)},
                             {"memory_limit", context.memory_limit()},
                             {"seed", context.seed()}};
  // A prediction, which another build may make differently. It decides which partitions a group has.
  if (work.is_by_partitions()) identity["groups"] = work.partitions.groups;
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
  JoinTasks(Plan::State& state, std::shared_ptr<const JoinWork> work, std::uint64_t memory)
      : state_(state), work_(std::move(work)), memory_(memory) {}

  template <typename Function>
  Task& add(std::string name, std::vector<std::string> after, PlannedTask cost, const Function& function) {
    Task task;
    task.output = work_->file_of(name);
    task.planned = std::move(cost);
    task.planned.name = std::move(name);
    task.planned.after = std::move(after);
    // Joins read vectors, and those of another file must not be combined with these.
    task.planned.after.emplace_back(input_name);
    task.planned.memory_bytes = memory_;  // exact search adapts to it
    task.work = [work = work_, function](const Context& context) { function(context, *work); };
    state_.tasks.push_back(std::move(task));
    return state_.tasks.back();
  }

 private:
  Plan::State& state_;
  std::shared_ptr<const JoinWork> work_;
  const std::uint64_t memory_;
};

// Each returns the names of the tasks whose outputs are the pairs.
std::vector<std::string> add_joins(JoinTasks& tasks, const std::shared_ptr<const JoinWork>& work,
                                   const JoinCosts& costs, const RowsView& rows) {
  std::vector<std::string> joins;
  for (std::size_t left = 0; left < work->blocks(); ++left)
    for (std::size_t right = left; right < work->blocks(); ++right) {
      Task& task = tasks.add(
          join_name(left, right), {}, cost_of_join(*work, costs, rows, left, right),
          [left, right](const Context& own, const JoinWork& of) { join_blocks(own, of, left, right); });
      task.read_ahead = [work, right](const std::stop_token& stop) { prefetch_block(*work, right, stop); };
      joins.push_back(task.planned.name);
    }
  return joins;
}

// The copies of vectors are deleted when all groups are compared.
std::vector<std::string> add_compared_partitions(JoinTasks& tasks, const JoinWork& work,
                                                 const JoinCosts& costs, const RowsView& rows) {
  tasks.add(train_join_name, {}, cost_of_train(work, costs, rows), train_join);
  std::vector<std::string> inputs = {train_join_name};
  for (std::size_t block = 0; block < work.blocks(); ++block) {
    Task& task =
        tasks.add(assign_join_name(block), {train_join_name}, cost_of_assign(work, costs, rows, block),
                  [block](const Context& own, const JoinWork& of) { assign_join(own, of, block); });
    task.is_temporary = true;
    inputs.push_back(task.planned.name);
  }
  std::vector<std::string> compared;
  for (std::size_t group = 0; group < work.partitions.groups; ++group)
    compared.push_back(
        tasks
            .add(compare_name(group), inputs, cost_of_compare(work, costs, rows),
                 [group](const Context& own, const JoinWork& of) { compare_partitions(own, of, group); })
            .planned.name);
  return compared;
}

JoinPlanReport report_of(const JoinWork& work) {
  JoinPlanReport report = {.method = work.method,
                           .partitions = work.partitions.count,
                           .predicted_copies = work.partitions.copies,
                           .predicted_comparisons = work.partitions.comparisons};
  if (!work.is_by_partitions()) return report;
  double stored = 0;
  double compared = 0;
  try {
    for (std::size_t group = 0; group < work.partitions.groups; ++group) {
      const FoundPairs found(work, group);
      stored += static_cast<double>(found.stored());
      compared += static_cast<double>(found.compared());
    }
  } catch (const Error& error) {
    // Not compared yet, or removed; a damaged file is made again by the task that reads it.
    if (error.code() != ErrorCode::not_found && error.code() != ErrorCode::corrupt) throw;
    return report;
  }
  report.copies = stored / static_cast<double>(work.rows);
  report.comparisons = compared;
  return report;
}

}  // namespace

std::string join_name(std::size_t left, std::size_t right) {
  return fmt::format("join-{:04}-{:04}", left, right);
}
std::string assign_join_name(std::size_t block) { return fmt::format("assign-{:04}", block); }
std::string compare_name(std::size_t group) { return fmt::format("compare-{:04}", group); }
std::string sides_name(std::size_t block) { return fmt::format("sides-{:04}", block); }

JoinWork join_work(const Context& context, const PlanFiles& files, float threshold,
                   const JoinPlanOptions& options) {
  return checked_work(context, {.files = files,
                                .threshold = threshold,
                                .metric = options.metric,
                                .provenance = options.provenance,
                                .method = options.method});
}

JoinWork dedup_work(const Context& context, const PlanFiles& files, float threshold,
                    const DedupPlanOptions& options) {
  JoinWork work = checked_work(context, {.files = files,
                                         .threshold = threshold,
                                         .metric = options.dedup.metric,
                                         .dedup = options.dedup,
                                         .scores = {options.dedup.scores.begin(), options.dedup.scores.end()},
                                         .provenance = options.provenance,
                                         .method = options.method});
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

  state->join_report = [work] { return report_of(*work); };

  const JoinCosts costs = measure_join(context, *work, rows);
  state->tasks.push_back(input_task(work->files, rows));
  JoinTasks tasks(*state, work, context.memory_limit());
  std::vector<std::string> last = work->is_by_partitions()
                                      ? add_compared_partitions(tasks, *work, costs, rows)
                                      : add_joins(tasks, work, costs, rows);
  if (work->dedup || work->is_by_partitions()) {
    const std::vector<std::string> found = std::move(last);
    last.clear();
    for (std::size_t block = 0; block < work->blocks(); ++block) {
      std::vector<std::string> inputs = found;
      if (!work->is_by_partitions()) {
        inputs.clear();
        for (std::size_t other = 0; other < work->blocks(); ++other)
          inputs.push_back(join_name(std::min(block, other), std::max(block, other)));
      }
      last.push_back(
          tasks
              .add(sides_name(block), std::move(inputs), cost_of_sides(*work, costs, block),
                   [block](const Context& own, const JoinWork& of) { gather_sides(own, of, block); })
              .planned.name);
    }
  }
  Task& finish = tasks.add(finish_join_name, std::move(last), cost_of_publish(*work, costs),
                           work->dedup ? publish_dedup : publish_pairs);
  finish.planned.memory_bytes = grouping_memory(*work);
  finish.output = work->files.output;
  return Plan(std::move(state));
}

}  // namespace plan

JoinPlanReport Plan::join_report() const {
  require(static_cast<bool>(state_->join_report), "plan: expected one of a join or a deduplication");
  return state_->join_report();
}

std::string_view name(JoinMethod method) {
  switch (method) {
    case JoinMethod::automatic: return "auto";
    case JoinMethod::partitions: return "partitions";
    case JoinMethod::pairs: break;
  }
  return "pairs";
}

JoinMethod parse_join_method(std::string_view text) {
  for (const JoinMethod method : {JoinMethod::automatic, JoinMethod::partitions, JoinMethod::pairs})
    if (name(method) == text) return method;
  fail(ErrorCode::invalid_argument, "method: expected one of auto, partitions, pairs, got '{}'", text);
}

Plan plan_threshold_join(const Context& context, const PlanFiles& files, float threshold,
                         const JoinPlanOptions& options) {
  return plan::plan_of(context, plan::join_work(context, files, threshold, options));
}

Plan plan_dedup(const Context& context, const PlanFiles& files, float threshold,
                const DedupPlanOptions& options) {
  return plan::plan_of(context, plan::dedup_work(context, files, threshold, options));
}

}  // namespace nearwise
