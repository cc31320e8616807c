// plan_graph_index: the identity and the tasks of a graph index.
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/check.h"
#include "graph_index/graph_build.h"
#include "plan/engine/plan_state.h"
#include "plan/graph_index/graph_index_work.h"
#include "plan/partition/graph_costs.h"
#include "plan/tasks/graph_tasks.h"

namespace nearwise {
namespace plan {
namespace {

// Increased when the same options give other intermediate files.
constexpr int version_of_work = 1;
// Pairs of exact search that take as long as pruning one row, of either time; unverified estimates.
constexpr double pairs_of_pruning = 600;
constexpr std::uint64_t file_bytes = 8192;

void check(const Context& context, const PlanFiles& files, const RowsView& rows,
           const GraphIndexPlanOptions& options) {
  constexpr const char* operation = "plan_graph_index";
  require(!files.work.empty() && !files.output.empty(), "{}: expected a work folder and an output",
          operation);
  require(context.place().kind == DeviceKind::cpu, "{}: expected a context on the host, got {}", operation,
          name(context.place()));
  require(context.memory_limit() != 0, "{}: the context must have a memory limit", operation);
  graph_index::check_graph_options(operation, rows, options.index);
  require(options.index.graph_recall < 1, "{}: graph_recall must be below 1, got {}", operation,
          options.index.graph_recall);
  require(options.index.ids.empty(), "{}: ids are row numbers, got {} others", operation,
          options.index.ids.size());
  const GraphCalibrationOptions& calibration = options.calibration;
  require(calibration.target_recall > 0 && calibration.target_recall <= 1,
          "{}: target_recall must be above 0 and at most 1, got {}", operation, calibration.target_recall);
  require(calibration.sample >= 1, "{}: sample must be at least 1, got 0", operation);
  require(calibration.queries.rows() == 0,
          "{}: it is calibrated on its vectors; calibrate the result with the {} queries", operation,
          calibration.queries.rows());
}

// Adds tasks with sizes and times.
class IndexTasks {
 public:
  IndexTasks(Plan::State& state, std::shared_ptr<const GraphIndexWork> work)
      : state_(state), work_(std::move(work)) {}

  template <typename Function>
  Task& add(const std::string& name, std::vector<std::string> after, std::uint64_t read,
            std::uint64_t written, double seconds, const Function& function) {
    Task task;
    task.planned.name = name;
    task.planned.after = std::move(after);
    // Vectors of another file must not be combined with these.
    task.planned.after.emplace_back(input_name);
    task.planned.read_bytes = read;
    task.planned.written_bytes = written + file_bytes;
    task.planned.seconds = seconds;
    task.planned.memory_bytes = state_.memory_limit;  // searches and blocks use all of it
    task.output = work_->file_of(name);
    task.work = [work = work_, function](const Context& own) { function(own, *work); };
    state_.tasks.push_back(std::move(task));
    return state_.tasks.back();
  }

 private:
  Plan::State& state_;
  std::shared_ptr<const GraphIndexWork> work_;
};

// From the codes to the edges of the index.
void add_edges(IndexTasks& tasks, const GraphIndexWork& work, const GraphCosts& costs,
               const std::vector<std::string>& measured, std::uint64_t code_bytes) {
  const std::uint64_t list_bytes = work.degree() * sizeof(std::int32_t);
  const auto blocks = [&](const auto& name) { return names(work.blocks(), name); };
  const auto seconds = [&](std::size_t rows) {
    return static_cast<double>(rows) * costs.pair * pairs_of_pruning;
  };
  for (std::size_t block = 0; block < work.blocks(); ++block) {
    const std::size_t rows = work.rows_of(block);
    std::vector<std::string> after = measured;
    after.emplace_back(codes_name);
    tasks
        .add(prune_name(block), std::move(after), code_bytes + rows * list_bytes, 3 * rows * list_bytes,
             seconds(rows),
             [block](const Context& own, const GraphIndexWork& of) { prune_block(own, of, block); })
        .is_temporary = true;
  }
  for (std::size_t block = 0; block < work.blocks(); ++block) {
    const std::size_t rows = work.rows_of(block);
    std::vector<std::string> after = blocks(prune_name);
    after.emplace_back(codes_name);
    tasks
        .add(link_name(block), std::move(after), code_bytes + 3 * rows * list_bytes, rows * list_bytes,
             seconds(rows),
             [block](const Context& own, const GraphIndexWork& of) { link_block(own, of, block); })
        .is_temporary = true;
  }
  const std::uint64_t edge_bytes = work.rows * list_bytes;
  const auto gathered = static_cast<double>(work.rows) * costs.gathered;
  std::vector<std::string> after = blocks(link_name);
  after.emplace_back(codes_name);
  tasks.add(connect_name, after, code_bytes + 4 * edge_bytes, work.rows, 4 * gathered, connect_blocks);
  after.back() = connect_name;
  tasks.add(edges_name, std::move(after), edge_bytes, edge_bytes, gathered, join_edges);
}

}  // namespace

Plan plan_of(const Context& context, const GraphIndexWork& given) {
  const auto work = std::make_shared<const GraphIndexWork>(given);
  const GraphIndexPlanOptions& options = work->options;
  const RowsView rows(nullptr, work->type, work->rows, work->dim, work->dim * element_size(work->type));
  auto state = std::make_unique<Plan::State>();
  state->folder = work->files.work;
  state->output = work->files.output;
  state->vectors = work->files.vectors;
  state->memory_limit = context.memory_limit();
  state->least_limit = work->least_limit;
  state->seed = context.seed();
  state->identity = {{"kind", "graph_index"},
                     {"version", version_of_work},
                     {"rows", work->rows},
                     {"dim", work->dim},
                     {"type", name(work->type)},
                     {"checksum", sampled_checksum(work->files.vectors)},
                     {"metric", name(options.index.metric)},
                     {"degree", work->degree()},
                     {"graph_recall", options.index.graph_recall},
                     {"target_recall", options.calibration.target_recall},
                     {"sample", options.calibration.sample},
                     {"memory_limit", context.memory_limit()},
                     {"seed", context.seed()}};
  const GraphCosts costs =
      measure_costs(context, VectorFile::open(work->files.vectors).rows(), Metric::sqeuclidean);
  const ScalarCodec codec = work->shape_of_codes();
  const std::uint64_t vector_bytes = work->rows * rows.stride_bytes();
  const std::uint64_t code_bytes = work->rows * codec.row_bytes();
  const std::uint64_t nibble_bytes = work->has_nibbles() ? work->rows * codec.nibble_query_size() / 2 : 0;
  const std::uint64_t edge_bytes = work->rows * work->degree() * sizeof(std::int32_t);
  const auto count = static_cast<double>(work->rows);

  IndexTasks tasks(*state, work);
  state->tasks.push_back(input_task(work->files, rows));
  tasks.add(codes_name, {}, 3 * vector_bytes, code_bytes, 2 * count * costs.gathered, write_codes);
  GraphTasks graph(*state, {work, &work->graph}, codes_name);
  const std::vector<std::string> measured = add_graph_tasks(graph, context, costs);
  add_edges(tasks, *work, costs, measured, code_bytes);
  std::vector<std::string> last = {codes_name, edges_name, entries_name};
  if (work->has_nibbles()) {
    tasks.add(nibbles_name, {codes_name}, code_bytes, nibble_bytes, count * costs.gathered, write_nibbles);
    last.emplace_back(nibbles_name);
  }
  constexpr double leaves = 4096;
  tasks.add(entries_name, {codes_name}, code_bytes, 0, count * costs.pair * leaves, train_entries);
  const std::uint64_t kept = vector_bytes + code_bytes + nibble_bytes + edge_bytes;
  tasks.add(finish_graph_index_name, std::move(last), kept, kept,
            count * (2 * costs.gathered + costs.pair * static_cast<double>(options.calibration.sample)),
            finish_graph_index);
  state->tasks.back().output = work->files.output;
  return Plan(std::move(state));
}

}  // namespace plan

Plan plan_graph_index(const Context& context, const PlanFiles& files, const GraphIndexPlanOptions& options) {
  const VectorFile file = VectorFile::open(files.vectors);
  plan::check(context, files, file.rows(), options);
  return plan::plan_of(context, plan::graph_index_work(context, files, file.rows(), options));
}

}  // namespace nearwise
