// Work larger than memory, cut into tasks from files to files that survive being stopped at any moment.
//
// A plan is made of a file of vectors, options, and the context's memory limit and seed: the same four give the same tasks
// and, whoever runs them and however often he is killed, the same bytes. A task reads what earlier tasks left in the work
// folder, writes one file under a temporary name, syncs and renames it, and records it in the folder's manifest
// (docs/scale.md). Running a task again whose output is there and valid does nothing. Of a graph by pairs, outputs go when all tasks
// that come after them are done: such a task is done too.
//
//   const Context context = Context::cpu({.memory_limit = 2ull << 30});
//   const Plan plan = plan_graph(context, {.vectors = "base.fbin", .work = "work", .output = "graph.nw"});
//   plan.run(context);                                                   // or, by any other executor:
//   for (const PlannedTask& task : plan.tasks()) plan.run_task(context, task.name);
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/ivf.h"
#include "nearwise/knn_graph.h"
#include "nearwise/types.h"

namespace nearwise {

// Bytes and seconds are estimates; memory is a bound.
struct PlannedTask {
  std::string name;                // "build-0-0003"
  std::vector<std::string> after;  // tasks whose outputs it reads
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
  std::uint64_t memory_bytes = 0;
  double seconds = 0;
  // Of a further pass: does nothing, and needs nothing, where the passes before it have reached the recall.
  bool if_needed = false;
};

enum class TaskOutcome : std::uint8_t {
  done,  // by this call
  done_before,
  not_needed,
};
std::string_view name(TaskOutcome outcome);

// Const methods may run at once, in one process and in several that share the work folder.
class Plan {
 public:
  Plan(Plan&&) noexcept;
  Plan& operator=(Plan&&) noexcept;
  ~Plan();

  // In an order in which they can run. The last one publishes the result under the output's name.
  std::span<const PlannedTask> tasks() const;
  // Of the task that needs most.
  std::uint64_t memory_bytes() const;
  // Of the work folder and the result, at the most, if tasks run in their order and those that may not be needed do not.
  std::uint64_t disk_bytes() const;
  // Of all tasks but those that may not be needed.
  double seconds() const;

  // Whether its output is recorded and there, or was and went because all that read it are done, or it is known not to be needed.
  bool is_done(std::string_view task) const;
  // Throws Error(invalid_argument) where there is no such task, a task that it comes after has not run, the context has
  // another seed or less memory than the plan was made with, or the work folder belongs to another plan; Error(corrupt)
  // naming a file of the work folder that was damaged.
  TaskOutcome run_task(const Context& context, std::string_view task) const;
  // All tasks in order. on_task is called after each. Throws Error(cannot_create) while somebody else is at work in the folder.
  void run(const Context& context,
           const std::function<void(const PlannedTask&, TaskOutcome)>& on_task = {}) const;
  // Removes what the tasks have left in the work folder, which takes about as much disk as the vectors, and returns its bytes.
  // The record of what was done stays, by which run() knows that nothing is left to do. Does nothing before the result is
  // published; stopped at any moment, the next call goes on. Throws as run() does where somebody is at work.
  std::uint64_t remove_work() const;
  // Throws Error(cannot_create) where the disks of the work folder and the output have no room for what will be written
  // beside what is there already.
  void check_disk() const;
  // Of the graph that was published.
  GraphReport report() const;

  class State;  // src/plan/engine/plan_state.h
  explicit Plan(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

struct PlanFiles {
  std::filesystem::path vectors;
  std::filesystem::path work;    // a folder of its own, made where there is none
  std::filesystem::path output;  // .nw
};

enum class GraphPlanMethod : std::uint8_t {
  partitions,  // overlapping partitions: a fixed number of passes over the vectors
  pairs,       // the graphs of every two shards are merged: as many passes as there are other shards
};
std::string_view name(GraphPlanMethod method);
// Throws Error(invalid_argument) naming those that there are.
GraphPlanMethod parse_graph_plan_method(std::string_view text);

struct GraphPlanOptions {
  std::size_t degree = 10;
  Metric metric = Metric::sqeuclidean;
  // As in KnnGraphOptions, but for 1, which is refused: exact search needs no plan.
  double recall = 0.95;
  GraphPlanMethod method = GraphPlanMethod::partitions;
  // Free text on where the graph came from. The same text gives the same bytes.
  std::map<std::string, std::string> provenance = {};
};

// By overlapping partitions: sampled k-means centroids, rows to their nearest partitions block by block, the partitions'
// members meet group by group of partitions, each as large as the memory limit allows, what they found is merged by rows, and the recall
// measured on 10,000 rows. Further passes with other partitions follow where it is below what was asked for.
//
// By pairs (GGM, section 5 of GNND): the graphs of shards, consecutive rows of which twice as many fit in memory, then every
// two of them merged in the rounds of a tournament. Each build and merge measures its own recall; there is one pass.
//
// The context must have a memory limit: Error(invalid_argument) without one, Error(out_of_memory) naming one that would do
// where it is too small. Nothing is written here, and the disk is not looked at.
Plan plan_graph(const Context& context, const PlanFiles& files, const GraphPlanOptions& options = {});

struct IndexPlanOptions {
  // Where fewer training rows per list fit the memory limit, as many are drawn, but no fewer than 32.
  std::variant<IvfPqOptions, IvfFlatOptions, IvfLsqOptions> training = IvfPqOptions{};
  CalibrationOptions measure = {};
  std::map<std::string, std::string> provenance = {};
};

// An inverted file, which may be larger than memory: lists and quantizer trained on a sample, rows assigned and encoded block by
// block, lists put together in their place, and probes measured on the whole, mapped. The same memory limit as in plan_graph; the result is
// what `build` of a context without one would save, but for its provenance and the rows trained on.
Plan plan_index(const Context& context, const PlanFiles& files, const IndexPlanOptions& options = {});

}  // namespace nearwise
