// plan_index: the identity and the tasks of an index plan.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <variant>
#include <vector>

#include "core/check.h"
#include "core/overloaded.h"
#include "ops/knn_plan.h"
#include "plan/engine/plan_state.h"
#include "plan/ivf/index_shape.h"
#include "plan/ivf/index_work.h"
#include "plan/partition/graph_costs.h"
#include "quantize/codec.h"

namespace nearwise {
namespace plan {
namespace {

// Increased when the same options give other intermediate files.
constexpr int version_of_work = 2;

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
  require(rows.rows() <= max_shard_rows, "plan_index: rows must be at most {}, got {}", max_shard_rows,
          rows.rows());
}

nlohmann::json identity_of(const Encoding& encoding) {
  return std::visit(Overloaded{[](const Flat&) -> nlohmann::json {
                                 return {{"name", "flat"}};
                               },
                               [](const Pq& pq) -> nlohmann::json {
                                 return {{"name", "pq"}, {"code_bytes", *pq.code_bytes}, {"bits", pq.bits}};
                               },
                               [](const Lsq& lsq) -> nlohmann::json {
                                 return {{"name", "lsq"},
                                         {"code_bytes", lsq.code_bytes},
                                         {"rounds", lsq.rounds},
                                         {"train_iterations", lsq.train_iterations},
                                         {"encode_iterations", lsq.encode_iterations}};
                               }},
                    encoding);
}

}  // namespace
}  // namespace plan

Plan plan_index(const Context& context, const PlanFiles& files, const IndexPlanOptions& options) {
  const VectorFile file = VectorFile::open(files.vectors);
  const RowsView rows = file.rows();
  plan::check(context, files, rows);
  // Every task would read the whole file to check it.
  require(options.index.vectors != VectorStorage::file,
          "plan_index: vectors must be keep, f16, u8 or none, got file");
  auto work = std::make_shared<plan::IndexWork>();
  work->files = files;
  work->options = options;
  work->rows = rows.rows();
  const IvfOptions index = plan::settle(context, rows, options.index);
  work->options.index = index;
  const std::size_t code_bytes = quantize::code_bytes(index.encoding, rows.dim(), rows.type());
  const std::uint64_t centroid_bytes = *index.lists * rows.dim() * sizeof(float);
  work->block_rows = plan::block_rows(context, rows, index);

  auto state = std::make_unique<Plan::State>();
  state->folder = files.work;
  state->output = files.output;
  state->vectors = files.vectors;
  state->memory_limit = context.memory_limit();
  state->least_limit = plan::least_limit(context, rows, options.index);
  state->seed = context.seed();
  state->identity = {{"kind", "index"},
                     {"version", plan::version_of_work},
                     {"rows", rows.rows()},
                     {"dim", rows.dim()},
                     {"type", name(rows.type())},
                     {"checksum", plan::sampled_checksum(files.vectors)},
                     {"metric", name(index.metric)},
                     {"lists", *index.lists},
                     {"iterations", index.iterations},
                     {"training_rows", *index.training_rows},
                     {"encoding", plan::identity_of(index.encoding)},
                     {"vectors", name(index.vectors)},
                     {"target_recall", options.calibration.target_recall},
                     {"queries", options.calibration.queries},
                     {"rerank", options.calibration.rerank},
                     {"largest_k", options.calibration.largest_k},
                     {"memory_limit", context.memory_limit()},
                     {"seed", context.seed()}};

  const plan::GraphCosts costs = plan::measure_costs(context, rows, index.metric);
  const auto count = static_cast<double>(rows.rows());
  const auto lists = static_cast<double>(*index.lists);
  const std::uint64_t row_bytes = rows.dim() * element_size(rows.type());
  const std::uint64_t kept_bytes = code_bytes + plan::vector_bytes(rows, index) + sizeof(Id);
  const std::uint64_t index_bytes = rows.rows() * kept_bytes + centroid_bytes;
  // Searches adapt to the whole memory limit.
  const std::uint64_t limit = context.memory_limit();
  const auto add = [&](const std::string& task_name, std::vector<std::string> after, PlannedTask planned,
                       const auto& function) {
    planned.name = task_name;
    planned.after = std::move(after);
    // Most tasks read vectors, and those of another file must not be combined with these.
    planned.after.emplace_back(plan::input_name);
    state->tasks.push_back({.planned = std::move(planned),
                            .output = work->file_of(task_name),
                            .work = [work, function](const Context& own) { function(own, *work); }});
  };
  state->tasks.push_back(plan::input_task(files, rows));
  add(plan::train_index_name, {},
      plan::cost(rows.rows() * row_bytes, centroid_bytes,
                 costs.pair * static_cast<double>(*index.training_rows * index.iterations) * lists, limit),
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
                 count * (costs.gathered / 2 + costs.pair * static_cast<double>(options.calibration.queries)),
                 limit),
      [](const Context& own, const plan::IndexWork& of) { plan::finish_index(own, of); });
  state->tasks.back().output = files.output;
  return Plan(std::move(state));
}

}  // namespace nearwise
