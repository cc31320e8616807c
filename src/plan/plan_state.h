// What a Plan handle holds: its tasks, each with the work behind it, and the folder they share.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "nearwise/plan.h"
#include "plan/manifest.h"

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
  bool passing = false;
  // Asks the system for what the work will read of the input, so that it is there when the work begins.
  std::function<void()> read_ahead = {};
};

// header_checksum of docs/format.md, which stands for every byte of a file. Throws Error(not_found | corrupt).
std::uint64_t fingerprint_of(const std::filesystem::path& container);

}  // namespace nearwise::plan

namespace nearwise {

class Plan::State {
 public:
  nlohmann::json identity;  // of the plan: input, options, memory limit, seed
  std::filesystem::path folder;
  std::filesystem::path output;
  std::uint64_t memory_limit = 0;
  std::uint64_t seed = 0;
  std::vector<plan::Task> tasks;
  std::vector<PlannedTask> planned;  // of `tasks`

  plan::Manifest manifest() const { return plan::Manifest(folder / "manifest"); }
};

}  // namespace nearwise
