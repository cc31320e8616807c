// A machine with processes that take turns: each attempt at some work is a process with calls of its own, run
// by a thread of which only one is awake at a time. At every file call the seed decides whether another
// attempt goes first, the process is killed, or the power fails.
//
// A killed process has no effect any more: its calls fail, so that not even destructors clean up, and its
// descriptors are closed. What it wrote stays, as after kill -9; the call at which it dies may have been
// made, a write in part. A power loss kills all processes, and the disk loses what is not durable.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "io/files/file_calls.h"
#include "nearwise/context.h"
#include "plan/simulation/draws.h"
#include "plan/simulation/simulated_disk.h"

namespace nearwise::plan::simulation {

// Mistakes of a product or a system, which a simulation must find.
enum class Bug : std::uint8_t {
  none,
  file_not_synced,
  folder_not_synced,
  manifest_not_synced,
  renamed_before_synced,
  no_locks,
};

class Attempt {
 public:
  using Work = std::function<void(const Context&, const Attempt&)>;

  // lent: its threads and budget are used by one attempt at a time.
  Attempt(const Context& lent, std::string name, Work work, pid_t process, std::uint64_t last_call)
      : name_(std::move(name)),
        work_(std::move(work)),
        lent_(lent),
        context_(lent.with_progress({})),
        process_(process),
        last_call_(last_call) {}

  const std::string& name() const { return name_; }
  bool is_killed() const { return killed_; }
  bool is_finished() const { return finished_; }
  // What the work threw; null for none.
  const std::exception_ptr& failure() const { return failure_; }

 private:
  friend class Machine;

  const std::string name_;
  const Work work_;
  const Context lent_;
  const Context context_;
  const pid_t process_;
  const std::uint64_t last_call_;  // at which it is killed; 0: never
  std::uint64_t calls_ = 0;
  bool killed_ = false;
  bool finished_ = false;
  bool waits_ = false;  // for a lock
  std::exception_ptr failure_;
  std::binary_semaphore turn_{0};
  std::thread thread_;
};

// One at a time in a process.
class Machine {
 public:
  struct Options {
    Bug bug = Bug::none;
    std::ostream* trace = nullptr;
    // A file whose inode and times are made up, so that they are the same in every run.
    std::filesystem::path vectors = {};
    // For attempts; as many as may run at a time.
    std::vector<Context> contexts = {};
  };

  Machine(SimulatedDisk& disk, Draws& draws, const Options& options);
  // All attempts must be finished.
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // last_call: the call at which it is killed, counted from 1; 0 for none. It first runs when it is resumed.
  std::shared_ptr<Attempt> start(const std::string& name, Attempt::Work work, std::uint64_t last_call = 0);
  // Runs it until it gives way or ends. Afterwards the power may be gone.
  void resume(const std::shared_ptr<Attempt>& attempt);
  void kill(const std::shared_ptr<Attempt>& attempt);
  const std::vector<std::shared_ptr<Attempt>>& running() const { return running_; }
  bool can_start() const { return !free_contexts_.empty(); }

  // One call in `calls` gives way to other attempts; 0: none.
  void give_way_at_one_in(std::size_t calls) { give_way_ = calls; }
  // From now on.
  void fail_power_after(std::uint64_t calls) { power_fails_at_ = calls_ + calls; }
  void keep_power() { power_fails_at_ = renames_left_ = 0; }
  // At the call after so many renames: there a file has its final name, and its folder is not synced.
  void fail_power_after_renames(std::uint64_t renames) { renames_left_ = renames; }
  bool is_without_power() const { return without_power_; }
  // Kills all attempts. The machine is on again afterwards.
  void lose_power();

  std::uint64_t calls() const { return calls_; }
  void trace(const std::string& line) const;

 private:
  static const FileCalls table;

  // Makes a call of the attempt whose thread this is. Returns -1 if it is dead.
  template <typename Perform, typename PerformPart>
  ssize_t call(const std::string& what, const Perform& perform, const PerformPart& perform_part);
  template <typename Perform>
  ssize_t call(const std::string& what, const Perform& perform) {
    return call(what, perform, perform);
  }
  // False if it was killed meanwhile.
  bool give_way(Attempt& attempt);
  void run(Attempt& attempt);
  void remove(const std::shared_ptr<Attempt>& attempt);

  int flock(int file, int operation);
  int fsync(int file);
  int rename(const char* from, const char* to);
  int close(int file);
  int stat(const char* path, FileStatus* status);
  pid_t process_of_caller() const;
  int find_process(pid_t process) const;
  int draw_bytes(void* data, std::size_t bytes);

  SimulatedDisk& disk_;
  Draws& draws_;
  const Options options_;
  std::vector<Context> free_contexts_;
  std::vector<std::shared_ptr<Attempt>> running_;
  std::binary_semaphore gave_way_{0};
  std::size_t give_way_ = 0;
  std::uint64_t calls_ = 0;
  std::uint64_t power_fails_at_ = 0;
  std::uint64_t renames_left_ = 0;
  bool without_power_ = false;
  pid_t last_process_ = 1000;
};

}  // namespace nearwise::plan::simulation
