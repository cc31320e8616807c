// A plan on a simulated machine from its first task to its result, with the faults of a seed.
//
// Rounds with faults come first. In each, tasks are run by `run`, one by one in any order that their inputs
// permit, as the executor for Ray does (python/nearwise/cluster), or both; some twice, at the same time or
// later. Attempts are killed, the power fails, the executor dies with its attempts or without, and between
// rounds a work file may be lost or damaged. Then a run without faults completes the plan. Checked:
//
// - An attempt that is not killed does what it is asked for. It may only find another at work in the folder.
// - Every file under its final name has the bytes of an undisturbed run, at every power loss and at the end.
// - A task that was reported as done stays done, also after a power loss, unless its file is damaged.
// - The result, when it is reported, has the bytes of an undisturbed run, and survives a power loss.
// - At the end nothing is left but work files, manifest and locks; the work folder of private vectors is
//   private.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <stdexcept>
#include <string>

#include "nearwise/plan.h"
#include "plan/simulation/draws.h"
#include "plan/simulation/machine.h"
#include "plan/simulation/simulated_disk.h"
#include "plan/simulation/simulated_plans.h"

namespace nearwise::plan::simulation {

// A property that does not hold.
class Violation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What happened, added up over seeds.
struct Tally {
  std::uint64_t attempts = 0;
  std::uint64_t calls = 0;
  std::uint64_t kills = 0;
  std::uint64_t power_losses = 0;
  std::uint64_t damaged_files = 0;
  std::uint64_t duplicates = 0;  // attempts at a task that runs or is done

  Tally& operator+=(const Tally& other);
};

// The plan that a seed is for, so that all have their share.
const std::string& plan_of_seed(std::uint64_t seed);

class Scenario {
 public:
  // The plan must outlive it. trace: a line for every call.
  Scenario(const SimulatedPlan& plan, std::uint64_t seed, Bug bug = Bug::none, std::ostream* trace = nullptr);

  // Throws Violation.
  Tally play();

 private:
  // An executor that runs tasks one by one.
  struct Executor {
    std::set<std::string> done;
    std::map<const Attempt*, std::string> running;
  };

  void play_round();
  // Starts an attempt at a task, if any can begin. False if all are done.
  bool start_task(Executor& executor);
  void start_duplicate(Executor& executor);
  void start(Executor& executor, const std::string& task);
  std::shared_ptr<Attempt> start_run();
  // Runs an attempt for a while, and judges what it has done when it ends.
  void resume(const std::shared_ptr<Attempt>& attempt, Executor& executor);
  void judge(const Attempt& attempt) const;
  void report(const PlannedTask& task, TaskOutcome outcome, const Attempt& attempt);
  void finish_attempts();
  void lose_power();
  void damage_file();
  void complete();
  // Without faults and alone. Returns the tasks that it has made.
  std::set<std::string> run_alone();
  void remove_work();

  void check_files() const;
  void check_promises() const;
  void check_result() const;
  void check_folder() const;
  std::uint64_t draw_last_call(std::size_t calls);

  const SimulatedPlan& plan_;
  Draws draws_;
  SimulatedDisk disk_;
  Machine machine_;
  Tally tally_;
  std::set<std::string> promised_;           // tasks that were reported as done
  std::map<std::string, Bytes> exceptions_;  // files that may have other bytes: damaged or older ones
  std::size_t kill_one_in_ = 0;              // attempts; 0: none
  bool is_removed_ = false;                  // the work, or part of it
};

}  // namespace nearwise::plan::simulation
