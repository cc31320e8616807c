// Sums over the tasks of a plan.
#include "nearwise/plan.h"

#include <algorithm>
#include <map>

#include "core/check.h"
#include "io/container/container_reader.h"
#include "io/files/little_endian.h"
#include "plan/engine/disk_space.h"
#include "plan/engine/plan_state.h"

namespace nearwise {
namespace {

namespace fs = std::filesystem;

// Peak size of the work folder if tasks run in order; temporary outputs are deleted with their last reader.
std::uint64_t folder_bytes(const Plan::State& state) {
  std::map<std::string, std::size_t, std::less<>> readers;
  std::map<std::string, const plan::Task*, std::less<>> temporary;
  for (const plan::Task& task : state.tasks) {
    if (task.is_temporary) temporary.emplace(task.planned.name, &task);
    for (const std::string& input : task.planned.after) ++readers[input];
  }
  std::uint64_t sum = 0;
  std::uint64_t most = 0;
  for (const plan::Task& task : state.tasks) {
    if (task.planned.if_needed || task.output == state.output) continue;
    sum += task.planned.written_bytes;
    most = std::max(most, sum);
    for (const std::string& input : task.planned.after)
      if (const auto found = temporary.find(input); --readers[input] == 0 && found != temporary.end())
        sum -= found->second->planned.written_bytes;
  }
  return most;
}

std::uint64_t bytes_there(const fs::path& file) {
  std::error_code missing;
  const std::uint64_t bytes = fs::file_size(file, missing);
  return missing ? 0 : bytes;
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

std::uint64_t Plan::disk_bytes() const { return folder_bytes(*state_) + tasks().back().written_bytes; }

double Plan::seconds() const {
  double sum = 0;
  for (const PlannedTask& task : tasks()) sum += task.if_needed ? 0 : task.seconds;
  return sum;
}

void Plan::check_disk() const {
  std::uint64_t in_folder = folder_bytes(*state_);
  for (const plan::Task& task : state_->tasks)
    if (!task.planned.if_needed && task.output != state_->output)
      in_folder -= std::min({in_folder, task.planned.written_bytes, bytes_there(task.output)});
  plan::check_disk({{{state_->folder, in_folder},
                     {fs::absolute(state_->output).parent_path(), tasks().back().written_bytes}}});
}

std::uint64_t plan::fingerprint_of(const ContainerReader& reader) {
  const auto header = container::encode(reader.header());
  return load<std::uint64_t>(header.data() + container::header_checksum_offset);
}

}  // namespace nearwise
