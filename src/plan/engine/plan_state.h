// The state of a Plan: its tasks with their work, and the work folder.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "io/files/new_files.h"
#include "nearwise/plan.h"
#include "nearwise/plan_join.h"
#include "plan/engine/manifest.h"
#include "plan/engine/task.h"

namespace nearwise {
class ContainerReader;
}

namespace nearwise::plan {

// The header_checksum of docs/format.md, which covers the checksums of all blocks. It tells files apart; only
// ContainerReader::verify() tells whether one is damaged.
std::uint64_t fingerprint_of(const ContainerReader& reader);

}  // namespace nearwise::plan

namespace nearwise {

class Plan::State {
 public:
  nlohmann::json identity;  // of the plan: input, options, memory limit, seed
  std::filesystem::path vectors;
  std::filesystem::path folder;
  std::filesystem::path output;
  std::uint64_t memory_limit = 0;
  std::uint64_t least_limit = 0;  // that suffices; 0: none below memory_limit is known
  std::uint64_t seed = 0;
  std::vector<plan::Task> tasks;
  std::function<JoinPlanReport()> join_report;  // none of other plans
  // Derived from `tasks` by the constructor of Plan:
  std::vector<PlannedTask> planned;
  std::optional<plan::TaskGraph> graph;
  // Permissions that files in the folder may have: set by make_work_folder, before any is made.
  mutable std::atomic<mode_t> permitted = all_permissions;

  plan::Manifest manifest() const { return plan::Manifest(folder / "manifest", permitted); }
  // Held by those who run tasks.
  std::filesystem::path lock() const { return folder / "lock"; }
  // The output's own path, without links.
  std::filesystem::path published() const {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(output));
  }
  // Shared by processes that make damaged outputs again: meanwhile no process deletes files.
  std::filesystem::path repair_lock() const { return folder / "repair.lock"; }
};

}  // namespace nearwise
