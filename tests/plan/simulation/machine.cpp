#include "plan/simulation/machine.h"

#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace nearwise::plan::simulation {
namespace {

Machine* machine = nullptr;
thread_local Attempt* current = nullptr;

}  // namespace

const FileCalls Machine::table = {
    .open =
        [](const char* path, int flags, mode_t mode) {
          const auto perform = [&] { return machine->disk_.open(path, flags, mode); };
          // A dead process has no descriptor.
          const auto perform_part = [&] {
            const int file = perform();
            return file == -1 ? -1 : machine->disk_.close(file);
          };
          return static_cast<int>(
              machine->call(fmt::format("open {}", machine->disk_.shown(path)), perform, perform_part));
        },
    // Reading changes nothing, and files are real.
    .open_to_read = [](const char* path, int flags) { return system_file_calls().open_to_read(path, flags); },
    .pread = [](int file, void* data, std::size_t bytes,
                off_t offset) { return system_file_calls().pread(file, data, bytes, offset); },
    .mmap = [](int file, std::size_t bytes) { return system_file_calls().mmap(file, bytes); },
    .write =
        [](int file, const void* data, std::size_t bytes) {
          return machine->call(
              fmt::format("write {}, {} bytes", machine->disk_.name_of(file), bytes),
              [&] { return machine->disk_.write(file, data, bytes); },
              [&] { return machine->disk_.write(file, data, machine->draws_.below(bytes + 1)); });
        },
    .pwrite =
        [](int file, const void* data, std::size_t bytes, off_t offset) {
          return machine->call(
              fmt::format("pwrite {}, {} bytes", machine->disk_.name_of(file), bytes),
              [&] { return machine->disk_.pwrite(file, data, bytes, offset); },
              [&] { return machine->disk_.pwrite(file, data, machine->draws_.below(bytes + 1), offset); });
        },
    .fchmod =
        [](int file, mode_t mode) {
          return static_cast<int>(
              machine->call("fchmod", [&] { return system_file_calls().fchmod(file, mode); }));
        },
    .fchown =
        [](int file, uid_t owner, gid_t group) {
          return static_cast<int>(
              machine->call("fchown", [&] { return system_file_calls().fchown(file, owner, group); }));
        },
    .flock = [](int file, int operation) { return machine->flock(file, operation); },
    .fsync = [](int file) { return machine->fsync(file); },
    .sync_file_range =
        [](int, off64_t, off64_t, unsigned) {
          return static_cast<int>(machine->call("sync_file_range", [] { return 0; }));
        },
    .close = [](int file) { return machine->close(file); },
    .rename = [](const char* from, const char* to) { return machine->rename(from, to); },
    .unlink =
        [](const char* path) {
          return static_cast<int>(machine->call(fmt::format("unlink {}", machine->disk_.shown(path)),
                                                [&] { return machine->disk_.unlink(path); }));
        },
    .mkdir =
        [](const char* path, mode_t mode) {
          return static_cast<int>(machine->call(fmt::format("mkdir {}", machine->disk_.shown(path)),
                                                [&] { return machine->disk_.mkdir(path, mode); }));
        },
    .chmod =
        [](const char* path, mode_t mode) {
          return static_cast<int>(machine->call(fmt::format("chmod {}", machine->disk_.shown(path)),
                                                [&] { return machine->disk_.chmod(path, mode); }));
        },
    .stat = [](const char* path, FileStatus* status) { return machine->stat(path, status); },
    .getpid = [] { return machine->process_of_caller(); },
    .kill = [](pid_t process, int) { return machine->find_process(process); },
    .getentropy = [](void* data, std::size_t bytes) { return machine->draw_bytes(data, bytes); },
};

Machine::Machine(SimulatedDisk& disk, Draws& draws, const Options& options)
    : disk_(disk), draws_(draws), options_(options), free_contexts_(options.contexts) {
  if (machine != nullptr) throw std::logic_error("two machines at a time");
  machine = this;
  replace_file_calls(&table);
}

Machine::~Machine() {
  while (!running_.empty()) kill(running_.back());
  replace_file_calls(nullptr);
  machine = nullptr;
}

void Machine::trace(const std::string& line) const {
  if (options_.trace != nullptr) *options_.trace << line << '\n';
}

std::shared_ptr<Attempt> Machine::start(const std::string& name, Attempt::Work work,
                                        std::uint64_t last_call) {
  if (!can_start()) throw std::logic_error("too many attempts at a time");
  ++last_process_;
  const auto attempt =
      std::make_shared<Attempt>(free_contexts_.back(), fmt::format("{} {}", last_process_, name),
                                std::move(work), last_process_, last_call);
  free_contexts_.pop_back();
  running_.push_back(attempt);
  trace(attempt->name_ + ": begins");
  attempt->thread_ = std::thread([this, own = attempt.get()] { run(*own); });
  return attempt;
}

void Machine::run(Attempt& attempt) {
  attempt.turn_.acquire();
  current = &attempt;
  try {
    attempt.work_(attempt.context_, attempt);
  } catch (...) {
    attempt.failure_ = std::current_exception();
  }
  attempt.finished_ = true;
  gave_way_.release();
}

void Machine::resume(const std::shared_ptr<Attempt>& attempt) {
  attempt->turn_.release();
  gave_way_.acquire();
  if (attempt->finished_) remove(attempt);
}

void Machine::remove(const std::shared_ptr<Attempt>& attempt) {
  const std::shared_ptr<Attempt> ended = attempt;  // which may be a reference into running_
  ended->thread_.join();
  free_contexts_.push_back(ended->lent_);
  std::erase(running_, ended);
  trace(ended->name_ + (ended->killed_ ? ": is dead" : ": ends"));
}

void Machine::kill(const std::shared_ptr<Attempt>& attempt) {
  trace(attempt->name_ + ": is killed");
  attempt->killed_ = true;
  attempt->context_.cancel();
  resume(attempt);  // to its end: it does not give way any more
}

void Machine::lose_power() {
  trace("the power fails");
  while (!running_.empty()) kill(running_.back());
  disk_.lose_power(draws_);
  without_power_ = false;
  keep_power();
}

bool Machine::give_way(Attempt& attempt) {
  gave_way_.release();
  attempt.turn_.acquire();
  return !attempt.killed_;
}

template <typename Perform, typename PerformPart>
ssize_t Machine::call(const std::string& what, const Perform& perform, const PerformPart& perform_part) {
  if (current == nullptr) return perform();  // the simulation's own
  Attempt& self = *current;
  const auto fails = [] {
    errno = EIO;
    return ssize_t{-1};
  };
  if (self.killed_) return fails();
  if (give_way_ != 0 && draws_.one_in(give_way_) && !give_way(self)) return fails();
  ++calls_;
  ++self.calls_;
  without_power_ = calls_ == power_fails_at_;
  if (!without_power_ && self.calls_ != self.last_call_) {
    const ssize_t result = perform();
    const int error = errno;
    trace(fmt::format("{}: {}{}", self.name_, what,
                      result == -1 ? std::string(": ") + std::strerror(error) : ""));
    errno = error;
    return result;
  }
  const bool made = draws_.one_in(2);
  trace(fmt::format("{}: {}: {} {}", self.name_, what, without_power_ ? "the power fails" : "is killed",
                    made ? "after part of it" : "before it"));
  if (made) perform_part();
  self.killed_ = true;
  self.context_.cancel();
  return fails();
}

int Machine::close(int file) {
  bool is_closed = false;
  const ssize_t result = call(fmt::format("close {}", disk_.name_of(file)), [&] {
    is_closed = true;
    return disk_.close(file);
  });
  if (!is_closed) disk_.close(file);  // a dead process has no descriptors
  return static_cast<int>(result);
}

int Machine::flock(int file, int operation) {
  const std::string name = disk_.name_of(file);
  if (options_.bug == Bug::no_locks) return 0;
  while (true) {
    const ssize_t result = call(fmt::format("flock {}", name),
                                [&] { return system_file_calls().flock(file, operation | LOCK_NB); });
    if (result == 0 || errno != EWOULDBLOCK || (operation & LOCK_NB) != 0) return static_cast<int>(result);
    if (current == nullptr) throw std::logic_error("the simulation waits for a lock");
    current->waits_ = true;
    if (std::ranges::all_of(running_, [](const auto& attempt) { return attempt->waits_; }))
      throw std::logic_error("all attempts wait for locks");
    const bool lives = give_way(*current);
    current->waits_ = false;
    if (lives) continue;
    errno = EIO;
    return -1;
  }
}

int Machine::fsync(int file) {
  const std::string name = disk_.name_of(file);
  return static_cast<int>(call(fmt::format("fsync {}", name), [&] {
    switch (options_.bug) {
      case Bug::file_not_synced:
      case Bug::renamed_before_synced:
        if (!disk_.is_folder(file) && name != "manifest") return 0;
        break;
      case Bug::folder_not_synced:
        if (disk_.is_folder(file)) return 0;
        break;
      case Bug::manifest_not_synced:
        if (name == "manifest") return 0;
        break;
      case Bug::no_locks:
      case Bug::none: break;
    }
    return disk_.fsync(file);
  }));
}

int Machine::rename(const char* from, const char* to) {
  const auto result =
      call(fmt::format("rename {} to {}", machine->disk_.shown(from), machine->disk_.shown(to)),
           [&] { return disk_.rename(from, to); });
  if (result == 0 && renames_left_ != 0 && --renames_left_ == 0) fail_power_after(1);
  if (result == 0 && options_.bug == Bug::renamed_before_synced)
    call(fmt::format("fsync {}", machine->disk_.shown(to)), [&] {
      disk_.sync(to);
      return 0;
    });
  return static_cast<int>(result);
}

int Machine::stat(const char* path, FileStatus* status) {
  const auto result = call(fmt::format("stat {}", machine->disk_.shown(path)), [&] {
    const int found = system_file_calls().stat(path, status);
    if (found == 0 && options_.vectors == path) {
      status->st_ino = 1;
      status->st_mtim = status->st_ctim = {.tv_sec = 1'000'000'000, .tv_nsec = 0};
    }
    return found;
  });
  return static_cast<int>(result);
}

pid_t Machine::process_of_caller() const { return current == nullptr ? last_process_ : current->process_; }

int Machine::find_process(pid_t process) const {
  const bool found = std::ranges::any_of(
      running_, [&](const auto& attempt) { return attempt->process_ == process && !attempt->killed_; });
  if (found || current == nullptr || current->process_ == process) return 0;
  errno = ESRCH;
  return -1;
}

int Machine::draw_bytes(void* data, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) static_cast<char*>(data)[i] = static_cast<char>(draws_.below(256));
  return 0;
}

}  // namespace nearwise::plan::simulation
