#include "plan/engine/ledger.h"

#include <charconv>
#include <span>
#include <vector>

#include "core/check.h"
#include "io/container/container_layout.h"
#include "io/files/file_calls.h"

namespace nearwise::plan {
namespace {

using Json = nlohmann::json;

std::string to_text(std::uint64_t number) { return fmt::format("{:016x}", number); }

std::uint64_t to_number(const Json& text) {
  const auto& digits = text.get_ref<const std::string&>();
  std::uint64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return number;
}

}  // namespace

Ledger::Ledger(const Plan::State& state) : state_(state) {
  const Manifest manifest = state.manifest();
  for (const Json& record : manifest.read()) {
    try {
      if (record.contains("plan")) {
        require(record.at("plan") == state.identity,
                "plan: {} belongs to another plan, made from {}; this one is made from {}",
                state.folder.native(), record.at("plan").dump(), state.identity.dump());
        begun_ = true;
      } else {
        records_.insert_or_assign(
            record.at("task").get<std::string>(),
            Record{.inputs = to_number(record.at("inputs")), .output = to_number(record.at("output"))});
      }
    } catch (const Json::exception& error) {
      fail(ErrorCode::corrupt, "{}: {}", manifest.path().native(), error.what());
    }
  }
}

bool Ledger::is_known_unneeded(const Task& task) const {
  if (!task.needed) return false;
  if (is_known_unneeded(find(task.decided_by))) return true;
  if (!is_recorded(task.decided_by)) return false;
  try {
    return !task.needed();
  } catch (const Error& error) {
    // The deciding output was lost or removed with the work folder: the task decides again.
    if (error.code() == ErrorCode::not_found) return false;
    throw;
  }
}

std::uint64_t Ledger::inputs_of(const Task& task) const {
  std::vector<std::uint64_t> outputs;
  for (const std::string& name : task.planned.after) {
    const auto found = records_.find(name);
    outputs.push_back(found == records_.end() ? 0 : found->second.output);
  }
  return container::checksum(std::as_bytes(std::span(outputs)));
}

Ledger::Status Ledger::status(const Task& task) const {
  if (is_known_unneeded(task)) return Status::not_needed;
  const auto found = records_.find(task.planned.name);
  if (found == records_.end() || found->second.inputs != inputs_of(task)) return Status::to_do;
  try {
    if (fingerprint_of(task.output) == found->second.output) return Status::done;
  } catch (const Error& error) {
    // Lost or damaged: the task runs again.
    if (error.code() != ErrorCode::not_found && error.code() != ErrorCode::corrupt) throw;
  }
  return is_consumed(task) ? Status::done : Status::to_do;
}

// If a reader must run again, so must this task, back to the nearest outputs that exist.
bool Ledger::is_consumed(const Task& task) const {
  if (!task.is_temporary) return false;
  if (consumed_.contains(&task)) return true;
  const std::span<const Task* const> readers = state_.graph->readers(task);
  if (readers.empty()) return false;
  for (const Task* reader : readers)
    if (status(*reader) != Status::done) return false;
  consumed_.insert(&task);
  return true;
}

void Ledger::remove_consumed(const Task& task) const {
  // A failure to delete costs disk space only.
  const auto remove = [this](const Task& read) {
    if (is_consumed(read)) file_calls().unlink(read.output.c_str());
  };
  for (const std::string& name : task.planned.after) remove(find(name));
  remove(task);
}

void Ledger::require_inputs(const Task& task) const {
  for (const std::string& name : task.planned.after)
    require(is_recorded(name) || is_known_unneeded(find(name)),
            "plan: '{}' depends on '{}', which has not run", task.planned.name, name);
}

void Ledger::record(const Task& task) {
  const Manifest manifest = state_.manifest();
  if (!begun_) manifest.append({{"plan", state_.identity}});
  begun_ = true;
  const Record record = {.inputs = inputs_of(task), .output = fingerprint_of(task.output)};
  // Readers of the earlier output are no longer done.
  if (const auto before = records_.find(task.planned.name);
      before != records_.end() && before->second.output != record.output)
    consumed_.clear();
  manifest.append(
      {{"task", task.planned.name}, {"inputs", to_text(record.inputs)}, {"output", to_text(record.output)}});
  records_.insert_or_assign(task.planned.name, record);
}

}  // namespace nearwise::plan
