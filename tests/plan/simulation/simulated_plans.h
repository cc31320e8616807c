// Small plans for simulations, with the bytes of every file of an undisturbed run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/plan.h"
#include "plan/simulation/simulated_disk.h"

namespace nearwise::plan::simulation {

// Mistakes of a task, which a simulation must find. They are for the plan of plain tasks.
enum class TaskBug : std::uint8_t {
  none,
  writes_in_place,     // instead of replacing its output atomically
  trusts_its_input,    // uses bytes of a work file without verifying them
  deletes_its_input,   // before its own output is recorded
  reads_another_file,  // that is none of its inputs
};

// A folder in memory where possible, for the files of a simulation; removed with everything in it.
class SimulationFolder {
 public:
  SimulationFolder();
  ~SimulationFolder();
  SimulationFolder(const SimulationFolder&) = delete;
  SimulationFolder& operator=(const SimulationFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// On a disk with root FOLDER/disk. The work folder is plans/NAME, which does not exist, as plans does not;
// the result is results/NAME.nw.
class SimulatedPlan {
 public:
  // name: "graph", "pairs", "index", "graph_index", "join", "dedup", "join_partitions", "dedup_partitions",
  // or "plain" for a plan whose tasks copy text.
  SimulatedPlan(const std::filesystem::path& folder, const std::string& name, TaskBug bug = TaskBug::none);

  static const std::vector<std::string>& names();

  const std::string& name() const { return name_; }
  const Plan& plan() const { return *plan_; }
  const std::filesystem::path& root() const { return root_; }
  const std::filesystem::path& vectors() const { return files_.vectors; }
  // For attempts that run at the same time.
  const std::vector<Context>& contexts() const { return contexts_; }

  // Paths relative to the root.
  std::string work() const { return "plans/" + name_; }
  std::string result() const { return "results/" + name_ + ".nw"; }
  std::string output_of(std::string_view task) const;
  // By path. Without manifest and locks.
  const std::map<std::string, Bytes>& expected() const { return expected_; }
  const std::string& last_task() const { return last_task_; }

 private:
  void write_vectors(std::size_t rows, std::size_t dim) const;
  Plan make(const Context& context, TaskBug bug);
  Plan make_graph(const Context& context) const;
  Plan make_pairs(const Context& context) const;
  Plan make_index(const Context& context) const;
  Plan make_graph_index(const Context& context) const;
  Plan make_join(const Context& context) const;
  Plan make_dedup(const Context& context) const;
  Plan make_join_partitions(const Context& context) const;
  Plan make_dedup_partitions(const Context& context) const;
  Plan make_plain(TaskBug bug) const;

  const std::string name_;
  const std::filesystem::path root_;
  const PlanFiles files_;
  std::vector<Context> contexts_;
  std::unique_ptr<Plan> plan_;
  std::string last_task_;
  std::map<std::string, Bytes> expected_;
};

}  // namespace nearwise::plan::simulation
