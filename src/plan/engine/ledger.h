// What the manifest of a work folder says about the tasks of a plan.
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
  // Throws Error(invalid_argument) where the folder holds the work of another plan, Error(corrupt).
  explicit Ledger(const Plan::State& state);

  enum class Status : std::uint8_t { to_do, done, not_needed };
  // Done: recorded, made of what its inputs are now, and its output is there, or of a passing task and not needed any more.
  Status status(const Task& task) const;
  // Throws Error(invalid_argument) naming a task that has to run before.
  void require_inputs(const Task& task) const;
  // Writes down that the output is there.
  void record(const Task& task);
  // Removes what nobody will read any more, now that this task is done: its inputs, and its output where others have read that
  // of another attempt at it.
  void remove_consumed(const Task& task) const;

  const Task& find(std::string_view name) const { return state_.graph->find(name); }

 private:
  struct Record {
    std::uint64_t inputs = 0;
    std::uint64_t output = 0;
  };

  // Of what decides it nothing may be known yet.
  bool is_known_unneeded(const Task& task) const;
  bool is_recorded(std::string_view name) const { return records_.contains(name); }
  // Whether all tasks are done that read the output of a passing one.
  bool is_consumed(const Task& task) const;
  // One number for what it was, or would be, made of.
  std::uint64_t inputs_of(const Task& task) const;

  const Plan::State& state_;
  std::map<std::string, Record, std::less<>> records_;
  mutable std::set<const Task*> consumed_;  // those that are known to be
  bool begun_ = false;
};

}  // namespace nearwise::plan
