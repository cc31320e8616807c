// A task of a plan with the work behind it, and who reads whose output.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "nearwise/plan.h"

namespace nearwise::plan {

struct Task {
  PlannedTask planned;
  std::filesystem::path output;  // a container
  // Makes the output; atomically, as containers are written.
  std::function<void(const Context&)> work;
  // Of tasks that may not be needed: whether this one is. Asked when `decided_by` is done.
  std::function<bool()> needed = {};
  std::string decided_by = {};
  // Its output is removed when all tasks that come after it, of which there are some, are done.
  bool is_temporary = false;
  // Asks the system for what the work will read of the input, so that it is there when the work begins. Ends soon after it is
  // asked to stop.
  std::function<void(const std::stop_token&)> read_ahead = {};
};

// Looked up once for a plan: a ledger is made at every start of a task, and inputs may be as many as blocks times groups.
class TaskGraph {
 public:
  // The tasks must outlive it, where they are.
  explicit TaskGraph(std::span<const Task> tasks);

  // Throws Error(invalid_argument).
  const Task& find(std::string_view name) const;
  // Of a passing task. Empty: of none that is read.
  std::span<const Task* const> readers(const Task& task) const;

 private:
  std::unordered_map<std::string_view, const Task*> tasks_;
  std::unordered_map<const Task*, std::vector<const Task*>> readers_;
};

}  // namespace nearwise::plan
