// plan_index: the tasks of an index over files, and sizes that keep each of them within the memory limit.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "cluster/training.h"
#include "core/check.h"
#include "core/checked.h"
#include "index/ivf_state.h"
#include "index/usual_shape.h"
#include "ops/knn_plan.h"
#include "ops/memory_limit.h"
#include "plan/graph_costs.h"
#include "plan/index_work.h"
#include "plan/input_checksum.h"
#include "plan/plan_state.h"
#include "quantize/additive_training.h"
#include "quantize/train_codebooks.h"
#include "quantize/training_rows.h"

namespace nearwise {
namespace plan {
namespace {

// Another number, where other work is done for the same options.
constexpr int version_of_work = 1;

// Rows to train on, per list, below which no memory limit goes.
constexpr std::size_t least_rows_per_list = 32;
// Of a product quantizer, whatever the limit (index/ivf_train.cpp).
constexpr std::size_t rows_per_codeword = 256;
// For what a search needs beside its operands to be worth its while, and small things.
constexpr std::uint64_t working_bytes = std::uint64_t{16} << 20;
// Rows of a block: fewer are not worth a file, and more not what a stop may cost.
constexpr std::size_t least_block_rows = 4096;
constexpr std::size_t most_block_rows = 4'000'000;

// What the sizes depend on, for either codec.
struct IndexShape {
  Metric metric;
  std::size_t lists;
  std::size_t code_bytes;
  std::size_t bits;  // of a product code; 0: another
  bool is_additive = false;
};

IndexShape index_shape(const IvfPqOptions& options, const RowsView&) {
  return {options.metric, options.lists, options.code_bytes, options.bits};
}
IndexShape index_shape(const IvfFlatOptions& options, const RowsView& rows) {
  return {options.metric, options.lists, rows.dim() * element_size(rows.type()), 0};
}
IndexShape index_shape(const IvfLsqOptions& options, const RowsView&) {
  return {options.metric, options.lists, options.code_bytes, 0, true};
}

std::uint64_t codeword_bytes(const Context& context, const RowsView& left, const IndexShape& shape) {
  if (shape.is_additive)
    return quantize::additive_training_bytes(
        context, left, {.operation = "plan_index", .codebooks = shape.code_bytes, .rounds = 1});
  const std::size_t parts = std::min(left.dim(), shape.code_bytes * (8 / shape.bits));
  const quantize::CodebookTraining training = {
      .shape = {left.dim(), parts, static_cast<unsigned>(shape.bits), {}}, .iterations = 1, .initial = {}};
  return quantize::training_bytes(context, left, training);
}

std::uint64_t training_bytes(const Context& context, const RowsView& rows, const IndexShape& shape,
                             std::size_t rows_per_list) {
  const std::size_t most = checked_multiply(shape.lists, rows_per_list, "plan_index: lists * rows_per_list");
  const std::uint64_t of_lists =
      quantize::TrainingRows::bytes(rows, most) +
      cluster::training_bytes(context, quantize::TrainingRows::shape(rows, most), shape.lists, {});
  std::uint64_t of_codes = 0;
  if (shape.bits != 0 || shape.is_additive) {
    const std::size_t sampled =
        std::min(rows.rows(), rows_per_codeword << (shape.is_additive ? 8 : shape.bits));
    const RowsView left(rows.data(), ElementType::f32, sampled, rows.dim(), rows.dim() * sizeof(float));
    of_codes = quantize::TrainingRows::bytes(rows, sampled) +
               sampled * (rows.dim() * sizeof(float) + sizeof(Id) + sizeof(float)) +
               codeword_bytes(context, left, shape);
  }
  return shape.lists * rows.dim() * sizeof(float) + std::max(of_lists, of_codes) + working_bytes;
}

// Of a row that is added: its list, its code on the way and in the list, its id, given and in the list.
std::uint64_t bytes_of_added_row(const IndexShape& shape) {
  return sizeof(std::uint32_t) + 2 * shape.code_bytes + 2 * sizeof(Id);
}

// Of the rows that are added at a time: what their centroids leave over, codes, and the nearest list.
std::uint64_t batch_bytes(std::size_t dim, std::size_t code_bytes) {
  return index::added_batch_rows * (dim * sizeof(float) + code_bytes + sizeof(Id) + sizeof(float));
}

// Gives the options their numbers. Throws Error(out_of_memory) where the limit is too small for the training.
template <typename Options>
void settle(const Context& context, const RowsView& rows, Options& options) {
  if (options.lists == 0) options.lists = index::usual_lists(rows.rows());
  require(options.lists <= rows.rows(),
          "plan_index: at most as many lists as rows expected, given {} lists and {} rows", options.lists,
          rows.rows());
  if constexpr (std::is_same_v<Options, IvfPqOptions>) {
    if (options.code_bytes == 0) options.code_bytes = index::usual_code_bytes(rows.dim());
    require(options.bits == 4 || options.bits == 8, "plan_index: codes of 4 or 8 bits expected, given {}",
            options.bits);
    require(options.code_bytes <= rows.dim(),
            "plan_index: codes of at most {} bytes expected, one per dimension, given {}", rows.dim(),
            options.code_bytes);
  }
  const IndexShape shape = index_shape(options, rows);
  const std::size_t most = divide_up(rows.rows(), options.lists);
  std::size_t wanted = options.rows_per_list == 0 ? most : std::min(most, options.rows_per_list);
  while (wanted > least_rows_per_list &&
         training_bytes(context, rows, shape, wanted) > context.memory_limit())
    wanted = std::max(least_rows_per_list, wanted / 2);
  options.rows_per_list = wanted;
  check_memory("plan_index", context, training_bytes(context, rows, shape, wanted));
}

std::size_t block_rows(const Context& context, const RowsView& rows, const IndexShape& shape,
                       std::uint64_t fixed) {
  const std::uint64_t row = bytes_of_added_row(shape);
  check_memory("plan_index", context, fixed + least_block_rows * row);
  const std::uint64_t fitting = (context.memory_limit() - fixed) / 2 / row;
  return std::min<std::uint64_t>(rows.rows(),
                                 std::clamp<std::uint64_t>(fitting, least_block_rows, most_block_rows));
}

PlannedTask cost(std::uint64_t read, std::uint64_t written, double seconds, std::uint64_t memory) {
  PlannedTask task;
  task.read_bytes = read;
  task.written_bytes = written;
  task.seconds = seconds;
  task.memory_bytes = memory;
  return task;
}

class Tasks {
 public:
  Tasks(Plan::State& state, std::shared_ptr<const IndexWork> work) : state_(state), work_(std::move(work)) {}

  template <typename Function>
  void add(const std::string& name, std::vector<std::string> after, PlannedTask cost,
           const Function& function) {
    Task task;
    task.output = work_->file_of(name);
    task.planned = std::move(cost);
    task.planned.name = name;
    task.planned.after = std::move(after);
    task.work = [work = work_, function](const Context& context) { function(context, *work); };
    state_.tasks.push_back(std::move(task));
  }

 private:
  Plan::State& state_;
  std::shared_ptr<const IndexWork> work_;
};

void check(const Context& context, const PlanFiles& files, const RowsView& rows) {
  require(!files.work.empty() && !files.output.empty(), "plan_index: a work folder and an output expected");
  require(context.place().kind == DeviceKind::cpu, "plan_index: a context on the host expected, given {}",
          name(context.place()));
  require(context.memory_limit() != 0,
          "plan_index: a context with a memory limit expected, given one without");
  require(rows.rows() >= 1, "plan_index: at least 1 row expected, given 0");
  require(rows.rows() <= most_shard_rows, "plan_index: rows must be at most {}, given {}", most_shard_rows,
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
  std::visit([&](auto& own) { plan::settle(context, rows, own); }, work->options.training);
  const plan::IndexShape shape =
      std::visit([&](const auto& own) { return plan::index_shape(own, rows); }, work->options.training);
  const std::uint64_t centroid_bytes = shape.lists * rows.dim() * sizeof(float);
  const std::uint64_t fixed =
      centroid_bytes + plan::batch_bytes(rows.dim(), shape.code_bytes) + plan::working_bytes;
  work->block_rows = plan::block_rows(context, rows, shape, fixed);

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
                     {"second_look", options.measure.second_look},
                     {"memory_limit", context.memory_limit()},
                     {"seed", context.seed()}};

  const plan::GraphCosts costs = plan::measure_costs(context, rows, shape.metric);
  const auto count = static_cast<double>(rows.rows());
  const auto lists = static_cast<double>(shape.lists);
  const std::uint64_t row_bytes = rows.dim() * element_size(rows.type());
  const std::uint64_t kept_bytes = shape.code_bytes + sizeof(Id);
  const std::uint64_t index_bytes = rows.rows() * kept_bytes + centroid_bytes;
  // Searches take what memory there is.
  const std::uint64_t limit = context.memory_limit();
  plan::Tasks tasks(*state, work);
  tasks.add(plan::train_index_name, {},
            plan::cost(rows.rows() * row_bytes, centroid_bytes,
                       costs.pair * static_cast<double>(rows_per_list * iterations) * lists * lists, limit),
            [](const Context& own, const plan::IndexWork& of) { plan::train_index(own, of); });
  std::vector<std::string> added;
  for (std::size_t block = 0; block < work->blocks(); ++block) {
    const std::size_t some = work->rows_of(block);
    added.push_back(plan::add_name(block));
    tasks.add(added.back(), {plan::train_index_name},
              plan::cost(some * row_bytes, some * kept_bytes + centroid_bytes,
                         costs.pair * static_cast<double>(some) * (lists + 256), limit),
              [block](const Context& own, const plan::IndexWork& of) { plan::add_block(own, of, block); });
  }
  tasks.add(plan::gather_name, added, plan::cost(index_bytes, index_bytes, count * costs.gathered / 2, 0),
            [](const Context&, const plan::IndexWork& of) { plan::gather_blocks(of); });
  tasks.add(
      plan::finish_index_name, {plan::gather_name},
      plan::cost(index_bytes + rows.rows() * row_bytes, index_bytes,
                 count * (costs.gathered / 2 + costs.pair * static_cast<double>(options.measure.queries)),
                 limit),
      [](const Context& own, const plan::IndexWork& of) { plan::finish_index(own, of); });
  state->tasks.back().output = files.output;
  return Plan(std::move(state));
}

}  // namespace nearwise
