// The state of a plan's tasks according to the manifest of the work folder.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "plan/engine/plan_state.h"

namespace nearwise::plan {

class Ledger {
 public:
  // Throws Error(invalid_argument) if the folder belongs to another plan, Error(corrupt) if the manifest is
  // damaged.
  explicit Ledger(const Plan::State& state);

  enum class Status : std::uint8_t { to_do, done, not_needed };
  // Done: recorded with its current inputs, and the output is present, or temporary and no longer needed.
  Status status(const Task& task) const;
  // Throws Error(invalid_argument) naming a task that must run first.
  void require_inputs(const Task& task) const;
  // Records that the output is present.
  void record(const Task& task);
  // Deletes temporary files that no remaining task reads, after this task is done: its inputs, and its own
  // output if all readers used that of an earlier run.
  void remove_consumed(const Task& task) const;

  const Task& find(std::string_view name) const { return state_.graph->find(name); }

 private:
  struct Record {
    std::uint64_t inputs = 0;
    std::uint64_t output = 0;
  };

  // False while the deciding task has not run.
  bool is_known_unneeded(const Task& task) const;
  bool is_recorded(std::string_view name) const { return records_.contains(name); }
  // Whether all readers of a temporary output are done.
  bool is_consumed(const Task& task) const;
  // A checksum of the recorded outputs of its inputs.
  std::uint64_t inputs_of(const Task& task) const;

  const Plan::State& state_;
  std::map<std::string, Record, std::less<>> records_;
  mutable std::set<const Task*> consumed_;  // cache of is_consumed()
  bool begun_ = false;
};

}  // namespace nearwise::plan
