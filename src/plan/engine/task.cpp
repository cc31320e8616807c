#include "plan/engine/task.h"

#include <algorithm>

#include "core/check.h"

namespace nearwise::plan {

TaskGraph::TaskGraph(std::span<const Task> tasks) {
  for (const Task& task : tasks) tasks_.emplace(task.planned.name, &task);
  if (std::ranges::none_of(tasks, &Task::is_temporary)) return;
  for (const Task& task : tasks)
    for (const std::string& input : task.planned.after)
      if (const Task& read = find(input); read.is_temporary) readers_[&read].push_back(&task);
}

const Task& TaskGraph::find(std::string_view name) const {
  const auto found = tasks_.find(name);
  require(found != tasks_.end(), "plan: there is no task '{}'", name);
  return *found->second;
}

std::span<const Task* const> TaskGraph::readers(const Task& task) const {
  const auto found = readers_.find(&task);
  return found == readers_.end() ? std::span<const Task* const>() : found->second;
}

}  // namespace nearwise::plan
