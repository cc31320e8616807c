// Sums over the tasks of a plan.
#include "nearwise/plan.h"

#include <algorithm>
#include <map>

#include "core/check.h"
#include "io/container/container_reader.h"
#include "io/files/little_endian.h"
#include "io/files/new_files.h"
#include "plan/engine/disk_space.h"
#include "plan/engine/plan_state.h"

namespace nearwise {
namespace {

namespace fs = std::filesystem;

// Bytes of the outputs of tasks that need not run again.
using MadeOutputs = std::map<const plan::Task*, std::uint64_t>;

// Outputs that exist, and temporary ones that were deleted because all their readers are made. Not the
// result: an earlier one may be there.
MadeOutputs made_outputs(const Plan::State& state) {
  MadeOutputs made;
  for (auto each = state.tasks.rbegin(); each != state.tasks.rend(); ++each) {
    const plan::Task& task = *each;
    if (task.output == state.output) continue;
    std::error_code missing;
    const std::uint64_t bytes = fs::file_size(task.output, missing);
    const auto readers = state.graph->readers(task);
    const bool is_deleted = !readers.empty() && std::ranges::all_of(readers, [&](const plan::Task* reader) {
      return made.contains(reader);
    });
    if (!missing || is_deleted) made.emplace(&task, missing ? 0 : bytes);
  }
  return made;
}

// By how many bytes the work folder grows at most if the tasks that are not made run in order; temporary
// outputs are deleted with their last reader.
std::uint64_t folder_growth(const Plan::State& state, const MadeOutputs& made) {
  const auto bytes_of = [&](const plan::Task& task) {
    const auto found = made.find(&task);
    return found == made.end() ? task.planned.written_bytes : found->second;
  };
  std::map<std::string, std::size_t, std::less<>> readers;
  std::map<std::string, const plan::Task*, std::less<>> temporary;
  for (const plan::Task& task : state.tasks) {
    if (task.is_temporary) temporary.emplace(task.planned.name, &task);
    for (const std::string& input : task.planned.after) ++readers[input];
  }
  std::uint64_t before = 0;
  for (const auto& [task, bytes] : made) before += bytes;
  std::uint64_t sum = before;
  std::uint64_t most = sum;
  for (const plan::Task& task : state.tasks) {
    if (task.planned.if_needed || task.output == state.output) continue;
    if (!made.contains(&task)) sum += task.planned.written_bytes;
    most = std::max(most, sum);
    for (const std::string& input : task.planned.after)
      if (const auto found = temporary.find(input); --readers[input] == 0 && found != temporary.end())
        sum -= bytes_of(*found->second);
  }
  return most - before;
}

}  // namespace

std::string_view name(TaskOutcome outcome) {
  switch (outcome) {
    case TaskOutcome::done: return "done";
    case TaskOutcome::done_before: return "done before";
    case TaskOutcome::not_needed: return "not needed";
    case TaskOutcome::repaired: break;
  }
  return "repaired";
}

std::string_view name(GraphPlanMethod method) {
  return method == GraphPlanMethod::pairs ? "pairs" : "partitions";
}

GraphPlanMethod parse_graph_plan_method(std::string_view text) {
  for (const GraphPlanMethod method : {GraphPlanMethod::partitions, GraphPlanMethod::pairs})
    if (name(method) == text) return method;
  fail(ErrorCode::invalid_argument, "method: expected one of partitions, pairs, got '{}'", text);
}

Plan::Plan(std::unique_ptr<State> state) : state_(std::move(state)) {
  // Work files hold copies of vectors; the result is a file like any other.
  for (plan::Task& task : state_->tasks)
    if (task.output != state_->output)
      task.work = [&permitted = state_->permitted, work = std::move(task.work)](const Context& context) {
        const NewFilesScope new_files(permitted);
        work(context);
      };
  for (const plan::Task& task : state_->tasks) state_->planned.push_back(task.planned);
  state_->graph.emplace(state_->tasks);
}
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;
Plan::~Plan() = default;

std::span<const PlannedTask> Plan::tasks() const { return state_->planned; }

std::uint64_t Plan::memory_bytes() const {
  std::uint64_t most = 0;
  for (const PlannedTask& task : tasks()) most = std::max(most, task.memory_bytes);
  return most;
}

std::uint64_t Plan::least_memory_bytes() const {
  return state_->least_limit == 0 ? state_->memory_limit
                                  : std::min(state_->least_limit, state_->memory_limit);
}

std::uint64_t Plan::disk_bytes() const { return folder_growth(*state_, {}) + tasks().back().written_bytes; }

double Plan::seconds() const {
  double sum = 0;
  for (const PlannedTask& task : tasks()) sum += task.if_needed ? 0 : task.seconds;
  return sum;
}

void Plan::check_disk() const {
  plan::check_disk({{{state_->folder, folder_growth(*state_, made_outputs(*state_))},
                     {fs::absolute(state_->output).parent_path(), tasks().back().written_bytes}}});
}

std::uint64_t plan::fingerprint_of(const ContainerReader& reader) {
  const auto header = container::encode(reader.header());
  return load<std::uint64_t>(header.data() + container::header_checksum_offset);
}

}  // namespace nearwise
