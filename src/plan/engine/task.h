// A task of a plan with its work, and the readers of its output.
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
  // Writes the output atomically.
  std::function<void(const Context&)> work;
  // For tasks marked if_needed: whether this one is needed, evaluated after `decided_by` is done.
  std::function<bool()> needed = {};
  std::string decided_by = {};
  // The output is deleted when all its readers are done.
  bool is_temporary = false;
  // Prefetches the input of the work into the page cache. Ends soon after stop is requested.
  std::function<void(const std::stop_token&)> read_ahead = {};
};

// Index of names and readers, made once per plan: tasks may have blocks * groups inputs.
class TaskGraph {
 public:
  // The tasks must outlive it at their addresses.
  explicit TaskGraph(std::span<const Task> tasks);

  // Throws Error(invalid_argument).
  const Task& find(std::string_view name) const;
  // Readers of a temporary output; empty for others.
  std::span<const Task* const> readers(const Task& task) const;

 private:
  std::unordered_map<std::string_view, const Task*> tasks_;
  std::unordered_map<const Task*, std::vector<const Task*>> readers_;
};

}  // namespace nearwise::plan
