// plan_index: the identity and the tasks of an index plan.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/check.h"
#include "ops/knn_plan.h"
#include "plan/engine/input_checksum.h"
#include "plan/engine/plan_state.h"
#include "plan/index/index_shape.h"
#include "plan/index/index_work.h"
#include "plan/partition/graph_costs.h"

namespace nearwise {
namespace plan {
namespace {

// Raised when the same options lead to other intermediate files.
constexpr int version_of_work = 1;

PlannedTask cost(std::uint64_t read, std::uint64_t written, double seconds, std::uint64_t memory) {
  PlannedTask task;
  task.read_bytes = read;
  task.written_bytes = written;
  task.seconds = seconds;
  task.memory_bytes = memory;
  return task;
}

void check(const Context& context, const PlanFiles& files, const RowsView& rows) {
  require(!files.work.empty() && !files.output.empty(), "plan_index: expected a work folder and an output");
  require(context.place().kind == DeviceKind::cpu, "plan_index: expected a context on the host, got {}",
          name(context.place()));
  require(context.memory_limit() != 0, "plan_index: the context must have a memory limit");
  require(rows.rows() >= 1, "plan_index: expected at least 1 row, got 0");
  require(rows.rows() <= max_shard_rows, "plan_index: rows must be at most {}, given {}", max_shard_rows,
          rows.rows());
}

}  // namespace
}  // namespace plan

Plan plan_index(const Context& context, const PlanFiles& files, const IndexPlanOptions& options) {
  const VectorFile file = VectorFile::open(files.vectors);
  const RowsView rows = file.rows();
  plan::check(context, files, rows);
  auto work = std::make_shared<plan::IndexWork>();
  work->files = files;
  work->options = options;
  work->rows = rows.rows();
  const plan::IndexShape shape = plan::settle(context, rows, work->options);
  const std::uint64_t centroid_bytes = shape.lists * rows.dim() * sizeof(float);
  work->block_rows = plan::block_rows(context, rows, shape);

  auto state = std::make_unique<Plan::State>();
  state->folder = files.work;
  state->output = files.output;
  state->memory_limit = context.memory_limit();
  state->seed = context.seed();
  const auto [iterations, rows_per_list] = std::visit(
      [](const auto& own) {
        return std::pair{own.iterations, own.rows_per_list};
      },
      work->options.training);
  const IvfLsqOptions additive = std::holds_alternative<IvfLsqOptions>(work->options.training)
                                     ? std::get<IvfLsqOptions>(work->options.training)
                                     : IvfLsqOptions();
  state->identity = {{"kind", "index"},
                     {"version", plan::version_of_work},
                     {"rows", rows.rows()},
                     {"dim", rows.dim()},
                     {"type", name(rows.type())},
                     {"checksum", fmt::format("{:016x}", plan::input_checksum(files.vectors))},
                     {"metric", name(shape.metric)},
                     {"lists", shape.lists},
                     {"code_bytes", shape.code_bytes},
                     {"bits", shape.bits},
                     {"additive", shape.is_additive},
                     {"additive_rounds", additive.rounds},
                     {"additive_iterations", additive.train_iterations},
                     {"encode_iterations", additive.encode_iterations},
                     {"iterations", iterations},
                     {"rows_per_list", rows_per_list},
                     {"recall", options.measure.recall},
                     {"queries", options.measure.queries},
                     {"rerank", options.measure.rerank},
                     {"memory_limit", context.memory_limit()},
                     {"seed", context.seed()}};

  const plan::GraphCosts costs = plan::measure_costs(context, rows, shape.metric);
  const auto count = static_cast<double>(rows.rows());
  const auto lists = static_cast<double>(shape.lists);
  const std::uint64_t row_bytes = rows.dim() * element_size(rows.type());
  const std::uint64_t kept_bytes = shape.code_bytes + sizeof(Id);
  const std::uint64_t index_bytes = rows.rows() * kept_bytes + centroid_bytes;
  // Searches adapt to the whole memory limit.
  const std::uint64_t limit = context.memory_limit();
  const auto add = [&](const std::string& task_name, std::vector<std::string> after, PlannedTask planned,
                       const auto& function) {
    planned.name = task_name;
    planned.after = std::move(after);
    state->tasks.push_back({.planned = std::move(planned),
                            .output = work->file_of(task_name),
                            .work = [work, function](const Context& own) { function(own, *work); }});
  };
  add(plan::train_index_name, {},
      plan::cost(rows.rows() * row_bytes, centroid_bytes,
                 costs.pair * static_cast<double>(rows_per_list * iterations) * lists * lists, limit),
      [](const Context& own, const plan::IndexWork& of) { plan::train_index(own, of); });
  std::vector<std::string> added;
  for (std::size_t block = 0; block < work->blocks(); ++block) {
    const std::size_t some = work->rows_of(block);
    added.push_back(plan::add_name(block));
    add(added.back(), {plan::train_index_name},
        plan::cost(some * row_bytes, some * kept_bytes + centroid_bytes,
                   costs.pair * static_cast<double>(some) * (lists + 256), limit),
        [block](const Context& own, const plan::IndexWork& of) { plan::add_block(own, of, block); });
  }
  add(plan::gather_name, added, plan::cost(index_bytes, index_bytes, count * costs.gathered / 2, 0),
      [](const Context& own, const plan::IndexWork& of) { plan::gather_blocks(own, of); });
  add(plan::finish_index_name, {plan::gather_name},
      plan::cost(index_bytes + rows.rows() * row_bytes, index_bytes,
                 count * (costs.gathered / 2 + costs.pair * static_cast<double>(options.measure.queries)),
                 limit),
      [](const Context& own, const plan::IndexWork& of) { plan::finish_index(own, of); });
  state->tasks.back().output = files.output;
  return Plan(std::move(state));
}

}  // namespace nearwise
