// plan_graph: the identity of a plan and the tasks of method `partitions` (pair_plan.cpp has those of
// `pairs`).
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/check.h"
#include "core/neighbor_entry.h"
#include "graph/metadata.h"
#include "io/container/container_reader.h"
#include "plan/engine/plan_state.h"
#include "plan/graph/group_rows.h"
#include "plan/pairs/pair_work.h"
#include "plan/partition/graph_costs.h"
#include "plan/tasks/graph_tasks.h"
#include "plan/tasks/graph_work.h"

namespace nearwise {
namespace plan {
namespace {

// Increased when the same options give other intermediate files.
constexpr int version_of_work = 7;

void check(const Context& context, const RowsView& rows, const GraphPlanOptions& options) {
  require(context.place().kind == DeviceKind::cpu, "plan_graph: expected a context on the host, got {}",
          name(context.place()));
  require(context.memory_limit() != 0, "plan_graph: the context must have a memory limit");
  require(rows.rows() >= 1, "plan_graph: expected at least 1 row, got 0");
  require(rows.rows() <= max_entry_rows, "plan_graph: expected at most {} rows, got {}", max_entry_rows,
          rows.rows());
  require(options.degree >= 1, "plan_graph: degree must be at least 1, got 0");
  require(options.target_recall > 0 && options.target_recall < 1,
          "plan_graph: target_recall must be above 0 and below 1, got {}", options.target_recall);
}

void add_pass(GraphTasks& tasks, const Context& context, const GraphWork& work, const GraphCosts& costs,
              std::size_t pass) {
  const GraphShape& shape = work.shape;
  const std::size_t degree = work.options.degree;
  tasks.begin_pass(pass);
  const auto merged = [&](std::size_t of) {
    return names(shape.blocks, [&](std::size_t block) { return merge_name(of, block); });
  };
  std::vector<std::string> before;
  if (pass != 0) {
    before = merged(pass - 1);
    before.insert(before.begin(), measure_name(pass - 1));
  }
  before.emplace_back(sample_name);
  tasks.add(train_name(pass), std::move(before), train_memory(context, shape, work.options),
            cost_of_train(shape, costs, degree),
            [pass](const Context& own, const GraphWork& of) { train_partitions(own, of, pass); });
  for (std::size_t block = 0; block < shape.blocks; ++block) {
    // With several groups the output holds copies of the vectors, deleted once all groups are built.
    tasks
        .add(assign_name(pass, block), {train_name(pass)}, assign_memory(shape),
             cost_of_assign(shape, costs, block),
             [pass, block](const Context& own, const GraphWork& of) { assign_block(own, of, pass, block); })
        .is_temporary = shape.groups > 1;
  }
  auto assigned = names(shape.blocks, [&](std::size_t block) { return assign_name(pass, block); });
  assigned.push_back(train_name(pass));
  const std::uint64_t memory_of_build = build_memory(context, shape, work.options);
  for (std::size_t group = 0; group < shape.groups; ++group)
    tasks
        .add(build_name(pass, group), assigned, memory_of_build, cost_of_build(shape, costs, degree),
             [pass, group](const Context& own, const GraphWork& of) { build_group(own, of, pass, group); })
        .read_ahead = [of = tasks.work(), pass, group](const std::stop_token& stop) {
      prefetch_group(*of, pass, group, stop);
    };
  const auto built = names(shape.groups, [&](std::size_t group) { return build_name(pass, group); });
  for (std::size_t block = 0; block < shape.blocks; ++block) {
    std::vector<std::string> after = built;
    if (pass != 0) after.push_back(merge_name(pass - 1, block));
    tasks.add(merge_name(pass, block), std::move(after), merge_memory(shape, work.options),
              cost_of_merge(shape, costs, degree, block),
              [pass, block](const Context& own, const GraphWork& of) { merge_block(own, of, pass, block); });
  }
  std::vector<std::string> measured = merged(pass);
  measured.emplace_back(sample_name);
  tasks.add(measure_name(pass), std::move(measured), measure_memory(shape, work.options),
            cost_of_measure(shape, costs, degree),
            [pass](const Context& own, const GraphWork& of) { measure_graph(own, of, pass); });
}

}  // namespace

std::string train_name(std::size_t pass) { return fmt::format("train-{}", pass); }
std::string assign_name(std::size_t pass, std::size_t block) {
  return fmt::format("assign-{}-{:04}", pass, block);
}
std::string build_name(std::size_t pass, std::size_t group) {
  return fmt::format("build-{}-{:04}", pass, group);
}
std::string merge_name(std::size_t pass, std::size_t block) {
  return fmt::format("merge-{}-{:04}", pass, block);
}
std::string measure_name(std::size_t pass) { return fmt::format("measure-{}", pass); }

std::vector<std::string> add_graph_tasks(GraphTasks& tasks, const Context& context, const GraphCosts& costs) {
  const GraphWork& work = *tasks.work();
  tasks.add(sample_name, {}, sample_memory(work.shape, work.options),
            cost_of_sample(work.shape, costs, work.options.degree), take_sample);
  std::vector<std::string> measured;
  for (std::size_t pass = 0; pass < work.passes(); ++pass) {
    if (work.options.method == GraphPlanMethod::pairs)
      add_pairs(tasks, context, work, costs);
    else
      add_pass(tasks, context, work, costs, pass);
    measured.push_back(measure_name(pass));
  }
  tasks.begin_pass(0);
  return measured;
}

Plan plan_of(const Context& context, const GraphWork& given) {
  const auto work = std::make_shared<const GraphWork>(given);
  const GraphShape& shape = work->shape;
  const GraphPlanOptions& options = work->options;
  auto state = std::make_unique<Plan::State>();
  state->folder = work->files.work;
  state->output = work->files.output;
  state->vectors = work->files.vectors;
  state->memory_limit = context.memory_limit();
  if (options.method == GraphPlanMethod::partitions)
    state->least_limit =
        sufficient_limit(context, shaped(shape, shape.rows), options, std::uint64_t{1} << 20);
  state->seed = context.seed();
  state->identity = {{"kind", "graph"},
                     {"version", version_of_work},
                     {"rows", shape.rows},
                     {"dim", shape.dim},
                     {"type", name(shape.type)},
                     {"checksum", sampled_checksum(work->files.vectors)},
                     {"degree", options.degree},
                     {"metric", name(options.metric)},
                     {"recall", options.target_recall},
                     {"memory_limit", context.memory_limit()},
                     {"seed", context.seed()},
                     {"method", name(options.method)}};
  const GraphCosts costs =
      measure_costs(context, VectorFile::open(work->files.vectors).rows(), options.metric);
  state->tasks.push_back(input_task(work->files, shaped(shape, shape.rows)));
  GraphTasks tasks(*state, work, input_name);
  const std::vector<std::string> measured = add_graph_tasks(tasks, context, costs);
  tasks.add(finish_name, measured, 0, cost_of_finish(shape, costs, options.degree), publish_graph);
  state->tasks.back().output = work->files.output;
  return Plan(std::move(state));
}

}  // namespace plan

Plan plan_graph(const Context& context, const PlanFiles& files, const GraphPlanOptions& options) {
  require(!files.work.empty() && !files.output.empty(), "plan_graph: expected a work folder and an output");
  const VectorFile file = VectorFile::open(files.vectors);
  plan::check(context, file.rows(), options);
  const auto shape = options.method == GraphPlanMethod::pairs ? plan::shape_of_pairs : plan::shape_of;
  return plan::plan_of(context,
                       {.files = files, .options = options, .shape = shape(context, file.rows(), options)});
}

GraphReport Plan::report() const {
  const ContainerReader reader = ContainerReader::open(state_->output);
  reader.expect(graph::container_kind, {"metadata", "ids", "distances"});
  try {
    return graph::decode_report(reader.metadata(), reader.section("ids").info().rows);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail(ErrorCode::corrupt, "{}: metadata: {}", reader.source(), error.what());
  }
}

}  // namespace nearwise
