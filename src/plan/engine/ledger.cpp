#include "plan/engine/ledger.h"

#include <charconv>
#include <filesystem>
#include <span>
#include <system_error>
#include <vector>

#include "core/check.h"
#include "io/container/container_reader.h"
#include "io/files/file_calls.h"
#include "io/files/folders.h"
#include "plan/engine/file_lock.h"

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

std::string checksum_of(const Json& identity) {
  const std::string text = identity.dump();
  return to_text(container::checksum(std::as_bytes(std::span(text))));
}

// "degree is 10 there and 5 here"
std::string describe_difference(const Json& there, const Json& here) {
  std::vector<std::string> differences;
  const auto describe = [](const Json& identity, const std::string& key) {
    return identity.contains(key) ? identity.at(key).dump() : std::string("not set");
  };
  Json both = here;
  if (there.is_object()) both.update(there);
  for (const auto& [key, value] : both.items())
    if (describe(there, key) != describe(here, key))
      differences.push_back(
          fmt::format("{} is {} there and {} here", key, describe(there, key), describe(here, key)));
  return fmt::format("{}", fmt::join(differences, ", "));
}

}  // namespace

Ledger::Ledger(const Plan::State& state) : state_(state), plan_(checksum_of(state.identity)) {
  const Manifest manifest = state.manifest();
  std::string other;  // what is different in another plan
  for (const Json& record : manifest.read()) {
    try {
      if (record.contains("identity")) {
        if (record.at("identity") == state.identity)
          begun_ = true;
        else
          other = describe_difference(record.at("identity"), state.identity);
      } else if (record.at("plan") == plan_ && record.contains("stamp")) {
        input_stamp_ = record.at("stamp").get<std::string>();
      } else if (record.at("plan") == plan_) {
        records_.insert_or_assign(
            record.at("task").get<std::string>(),
            Record{.inputs = to_number(record.at("inputs")), .output = to_number(record.at("output"))});
      } else if (other.empty()) {
        other = "it has other vectors or options";
      }
    } catch (const Json::exception& error) {
      fail(ErrorCode::corrupt,
           "{0}: a record is not one of a plan ({1}): delete {0}, after which all tasks run again",
           manifest.path().native(), error.what());
    }
  }
  // Lines of another plan may be in a damaged manifest. Without any of this plan, the folder is not its own.
  require(other.empty() || begun_ || !records_.empty(),
          "plan: {} belongs to another plan, complete or not: {}; use another folder, or delete this one",
          state.folder.native(), other);
}

bool Ledger::is_known_unneeded(const Task& task) const {
  if (!task.needed) return false;
  if (is_known_unneeded(find(task.decided_by))) return true;
  if (!is_recorded(task.decided_by)) return false;
  try {
    return !task.needed();
  } catch (const Error& error) {
    // The deciding output is damaged, lost or was removed with the work folder: its task runs again.
    if (error.code() == ErrorCode::not_found || error.code() == ErrorCode::corrupt) return false;
    throw;
  }
}

std::uint64_t Ledger::output_of(const Task& task) const {
  const auto found = records_.find(task.planned.name);
  return found == records_.end() ? 0 : found->second.output;
}

std::uint64_t Ledger::inputs_of(const Task& task) const {
  std::vector<std::uint64_t> outputs;
  for (const std::string& name : task.planned.after) outputs.push_back(output_of(find(name)));
  return container::checksum(std::as_bytes(std::span(outputs)));
}

Ledger::Status Ledger::status(const Task& task) const {
  if (is_known_unneeded(task)) return Status::not_needed;
  const auto found = records_.find(task.planned.name);
  if (found == records_.end() || found->second.inputs != inputs_of(task)) return Status::to_do;
  if (&task != &state_.tasks.back()) {
    if (has_output(task, Check::header)) return Status::done;
  } else if (result_is_intact_ || is_intact(task)) {
    result_is_intact_ = true;
    return Status::done;
  }
  return is_consumed(task) ? Status::done : Status::to_do;
}

bool Ledger::has_output(const Task& task, Check check) const {
  const auto found = records_.find(task.planned.name);
  if (found == records_.end()) return false;
  try {
    const ContainerReader reader = ContainerReader::open(task.output);
    if (fingerprint_of(reader) != found->second.output) return false;
    if (check == Check::every_block) reader.verify();
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found && error.code() != ErrorCode::corrupt) throw;
    return false;
  }
}

// If a reader must run again, so must this task, back to the nearest outputs that exist.
bool Ledger::is_consumed(const Task& task) const {
  if (!task.is_temporary) return false;
  if (consumed_.contains(&task)) return true;
  const std::span<const Task* const> readers = state_.graph->readers(task);
  if (readers.empty()) return false;
  // Tasks run in order: the last reader is the likeliest not to be done, which takes no file to tell.
  for (auto reader = readers.rbegin(); reader != readers.rend(); ++reader)
    if (status(**reader) != Status::done) return false;
  consumed_.insert(&task);
  return true;
}

void Ledger::remove_consumed(const Task& task) const {
  const auto remove = [this](const Task& read) {
    std::error_code error;
    if (!is_consumed(read) || !std::filesystem::exists(read.output, error)) return;
    sync();
    try {
      const FileLock lock(state_.repair_lock(), FileLock::Mode::exclusive);
      file_calls().unlink(read.output.c_str());
    } catch (const Error&) {
      // Another process has made the file again for a repair, or may need it for one. A file that stays costs
      // disk space only.
    }
  };
  for (const std::string& name : task.planned.after) remove(find(name));
  remove(task);
}

void Ledger::sync() const {
  if (is_synced_) return;
  state_.manifest().sync();  // and the outputs next to it
  if (std::filesystem::exists(state_.output)) sync_folder(state_.published().parent_path());
  is_synced_ = true;
}

void Ledger::require_inputs(const Task& task) const {
  for (const std::string& name : task.planned.after) {
    const auto found = records_.find(name);
    // An output of other inputs than the current ones is no longer valid.
    const bool has_run = found != records_.end() && found->second.inputs == inputs_of(find(name));
    require(has_run || is_known_unneeded(find(name)),
            "plan: '{}' depends on '{}', which has not run, or must run again", task.planned.name, name);
  }
}

Manifest Ledger::begun_manifest() {
  Manifest manifest = state_.manifest();
  if (!begun_) manifest.append({{"identity", state_.identity}});
  begun_ = true;
  return manifest;
}

void Ledger::record_input(const std::string& stamp) {
  begun_manifest().append({{"plan", plan_}, {"stamp", stamp}});
  input_stamp_ = stamp;
}

void Ledger::record(const Task& task) {
  const bool is_result = &task == &state_.tasks.back();
  const ContainerReader reader = ContainerReader::open(task.output);
  if (is_result) reader.verify();
  const Manifest manifest = begun_manifest();
  const Record record = {.inputs = inputs_of(task), .output = fingerprint_of(reader)};
  // Readers of the earlier output are no longer done.
  if (const auto before = records_.find(task.planned.name);
      before != records_.end() && before->second.output != record.output)
    consumed_.clear();
  manifest.append({{"plan", plan_},
                   {"task", task.planned.name},
                   {"inputs", to_text(record.inputs)},
                   {"output", to_text(record.output)}});
  records_.insert_or_assign(task.planned.name, record);
  if (is_result) result_is_intact_ = true;
}

}  // namespace nearwise::plan
