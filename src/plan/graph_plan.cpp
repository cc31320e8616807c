// plan_graph: what a plan depends on, and the tasks of a graph by overlapping partitions (pair_plan.cpp has the others).
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/check.h"
#include "core/neighbor_entry.h"
#include "graph/metadata.h"
#include "io/container_reader.h"
#include "plan/graph_costs.h"
#include "plan/graph_tasks.h"
#include "plan/graph_work.h"
#include "plan/input_checksum.h"
#include "plan/pair_work.h"
#include "plan/plan_state.h"

namespace nearwise {
namespace plan {
namespace {

// Another number, where other work is done for the same options.
constexpr int version_of_work = 1;

void check(const Context& context, const RowsView& rows, const GraphPlanOptions& options) {
  require(context.place().kind == DeviceKind::cpu, "plan_graph: a context on the host expected, given {}",
          name(context.place()));
  require(context.memory_limit() != 0,
          "plan_graph: a context with a memory limit expected, given one without");
  require(rows.rows() >= 1, "plan_graph: at least 1 row expected, given 0");
  require(rows.rows() <= most_entry_rows, "plan_graph: rows must be at most {}, given {}", most_entry_rows,
          rows.rows());
  require(options.degree >= 1, "plan_graph: the degree must be at least 1, given 0");
  require(options.recall > 0 && options.recall < 1,
          "plan_graph: the recall must be above 0 and below 1, given {}", options.recall);
}

void add_pass(GraphTasks& tasks, const Context& context, const GraphWork& work, const GraphCosts& costs,
              std::size_t pass) {
  const GraphShape& shape = work.shape;
  const std::size_t degree = work.options.degree;
  tasks.begin_pass(pass);
  tasks.add(train_name(pass), {}, train_memory(context, shape, work.options.metric),
            cost_of_train(shape, costs),
            [pass](const Context& own, const GraphWork& of) { train_cells(own, of, pass); });
  for (std::size_t block = 0; block < shape.blocks; ++block)
    tasks.add(assign_name(pass, block), {train_name(pass)}, assign_memory(shape),
              cost_of_assign(shape, costs, block),
              [pass, block](const Context& own, const GraphWork& of) { assign_block(own, of, pass, block); });
  const auto assigned = names(shape.blocks, [&](std::size_t block) { return assign_name(pass, block); });
  const std::uint64_t memory_of_build = build_memory(context, shape, work.options);
  for (std::size_t group = 0; group < shape.groups; ++group)
    tasks.add(build_name(pass, group), assigned, memory_of_build, cost_of_build(shape, costs, degree),
              [pass, group](const Context& own, const GraphWork& of) { build_group(own, of, pass, group); });
  const auto built = names(shape.groups, [&](std::size_t group) { return build_name(pass, group); });
  for (std::size_t block = 0; block < shape.blocks; ++block) {
    std::vector<std::string> after = built;
    if (pass != 0) after.push_back(merge_name(pass - 1, block));
    tasks.add(merge_name(pass, block), std::move(after), merge_memory(shape, work.options),
              cost_of_merge(shape, costs, degree, block),
              [pass, block](const Context& own, const GraphWork& of) { merge_block(own, of, pass, block); });
  }
  tasks.add(measure_name(pass),
            names(shape.blocks, [&](std::size_t block) { return merge_name(pass, block); }),
            measure_memory(shape, work.options), cost_of_measure(shape, costs),
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

VectorFile GraphWork::open() const {
  VectorFile file = VectorFile::open(files.vectors);
  const RowsView rows = file.rows();
  require(rows.rows() == shape.rows && rows.dim() == shape.dim && rows.type() == shape.type,
          "plan_graph: {} had {} x {} {}, and has {} x {} {} now", files.vectors.native(), shape.rows,
          shape.dim, name(shape.type), rows.rows(), rows.dim(), name(rows.type()));
  return file;
}

}  // namespace plan

Plan plan_graph(const Context& context, const PlanFiles& files, const GraphPlanOptions& options) {
  require(!files.work.empty() && !files.output.empty(), "plan_graph: a work folder and an output expected");
  const VectorFile file = VectorFile::open(files.vectors);
  const RowsView rows = file.rows();
  plan::check(context, rows, options);
  auto work = std::make_shared<plan::GraphWork>();
  work->files = files;
  work->options = options;
  const bool by_pairs = options.way == GraphWay::pairs;
  work->shape = (by_pairs ? plan::shape_of_pairs : plan::shape_of)(context, rows, options);

  auto state = std::make_unique<Plan::State>();
  state->folder = files.work;
  state->output = files.output;
  state->memory_limit = context.memory_limit();
  state->seed = context.seed();
  state->identity = {
      {"kind", "graph"},           {"version", plan::version_of_work},
      {"rows", rows.rows()},       {"dim", rows.dim()},
      {"type", name(rows.type())}, {"checksum", fmt::format("{:016x}", plan::input_checksum(files.vectors))},
      {"degree", options.degree},  {"metric", name(options.metric)},
      {"recall", options.recall},  {"memory_limit", context.memory_limit()},
      {"seed", context.seed()},    {"way", name(options.way)}};
  const plan::GraphCosts costs = plan::measure_costs(context, rows, options.metric);
  plan::GraphTasks tasks(*state, work);
  std::vector<std::string> measured;
  for (std::size_t pass = 0; pass < work->passes(); ++pass) {
    if (by_pairs)
      plan::add_pairs(tasks, context, *work, costs);
    else
      plan::add_pass(tasks, context, *work, costs, pass);
    measured.push_back(plan::measure_name(pass));
  }
  tasks.begin_pass(0);
  tasks.add(plan::finish_name, measured, 0, plan::cost_of_finish(work->shape, costs, options.degree),
            [](const Context& own, const plan::GraphWork& of) { plan::publish_graph(own, of); });
  state->tasks.back().output = files.output;
  return Plan(std::move(state));
}

GraphReport Plan::report() const {
  const ContainerReader reader = ContainerReader::open(state_->output);
  reader.expect(graph::container_kind, {"metadata", "ids", "distances"});
  try {
    return graph::decode_report(reader.metadata());
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail(ErrorCode::corrupt, "{}: metadata: {}", reader.source(), error.what());
  }
}

}  // namespace nearwise
