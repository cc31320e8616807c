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
  // Throws Error(invalid_argument) if the folder belongs to another plan. Damaged lines of the manifest are
  // left out: their tasks run again.
  explicit Ledger(const Plan::State& state);

  enum class Status : std::uint8_t { to_do, done, not_needed };
  // Done: recorded with its current inputs, and the output is present, or temporary and no longer needed. The
  // plan's result must also be undamaged; other outputs are verified by the tasks that read them.
  Status status(const Task& task) const;
  bool is_recorded(std::string_view name) const { return records_.contains(name); }
  // A checksum of the recorded output; 0 if there is none.
  std::uint64_t output_of(const Task& task) const;
  // Whether the file is the recorded one and every checksum in it holds. Reads all of it.
  bool is_intact(const Task& task) const { return has_output(task, Check::every_block); }
  // Throws Error(invalid_argument) naming a task that must run first.
  void require_inputs(const Task& task) const;
  // Records that the output is present. Reads all of the plan's result. Throws Error(corrupt | not_found).
  void record(const Task& task);
  // The stamp (plan_input.h) of the vector file when it was last verified as a whole; empty if never.
  const std::string& input_stamp() const { return input_stamp_; }
  void record_input(const std::string& stamp);
  // Makes records and the names of outputs durable, before a caller is told or a file deleted because of
  // them: they may be of a process that was killed before it synced them.
  void sync() const;
  // Deletes temporary files that no remaining task reads, after this task is done: its inputs, and its own
  // output if all readers used that of an earlier run.
  void remove_consumed(const Task& task) const;

  const Task& find(std::string_view name) const { return state_.graph->find(name); }

 private:
  // Begins with the plan's identity.
  Manifest begun_manifest();

  struct Record {
    std::uint64_t inputs = 0;
    std::uint64_t output = 0;
  };

  enum class Check : std::uint8_t { header, every_block };
  // Whether the output is the recorded one. Its header has a checksum of all other checksums.
  bool has_output(const Task& task, Check check) const;
  // False while the deciding task has not run.
  bool is_known_unneeded(const Task& task) const;
  // Whether all readers of a temporary output are done.
  bool is_consumed(const Task& task) const;
  // A checksum of the recorded outputs of its inputs.
  std::uint64_t inputs_of(const Task& task) const;

  const Plan::State& state_;
  std::string input_stamp_;
  std::string plan_;  // a checksum of the plan's identity, in every record
  std::map<std::string, Record, std::less<>> records_;
  mutable std::set<const Task*> consumed_;  // cache of is_consumed()
  mutable bool result_is_intact_ = false;   // cache of is_intact()
  mutable bool is_synced_ = false;          // what it found; it syncs what it records
  bool begun_ = false;
};

}  // namespace nearwise::plan
