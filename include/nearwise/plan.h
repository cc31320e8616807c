// Plans: builds of graphs and indexes larger than memory, as tasks over files that resume after a crash.
//
// A plan is determined by the vector file, the options, and the context's memory limit and seed. Output is
// byte-identical however often the run is interrupted and wherever tasks run. A task reads the outputs of
// earlier tasks from the work folder, writes one file under a temporary name, syncs and renames it, and
// records it in the folder's manifest (docs/algorithms/plans.md). Running a task whose output is present and
// valid does nothing. With method `pairs`, an output is deleted once all its readers have finished; its
// task still counts as done.
//
//   const Context context = Context::cpu({.memory_limit = 2ull << 30});
//   const Plan plan = plan_graph(context, {.vectors = "base.fbin", .work = "work", .output = "graph.nw"});
//   plan.run(context);  // or, with any other scheduler:
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
#include <vector>

#include "nearwise/context.h"
#include "nearwise/export.h"
#include "nearwise/graph/knn_graph.h"
#include "nearwise/graph_index.h"
#include "nearwise/ivf.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

// read_bytes, written_bytes and seconds are estimates; memory_bytes is an upper bound.
struct PlannedTask {
  std::string name;                // "build-0-0003"
  std::vector<std::string> after;  // tasks whose outputs it reads
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
  std::uint64_t memory_bytes = 0;
  double seconds = 0;
  // Belongs to a later pass: skipped if earlier passes reach the target recall.
  bool if_needed = false;
};

enum class TaskOutcome : std::uint8_t {
  done,  // by this call
  done_before,
  not_needed,
  repaired,  // run again because its output was found damaged or lost by a task that reads it
};
std::string_view name(TaskOutcome outcome);

struct JoinPlanReport;

// Const methods may run concurrently, in one process and in several that share the work folder.
class Plan {
 public:
  Plan(Plan&&) noexcept;
  Plan& operator=(Plan&&) noexcept;
  ~Plan();

  // In an order that satisfies all dependencies. The last task publishes the result under the output's name.
  std::span<const PlannedTask> tasks() const;
  // Maximum over all tasks.
  std::uint64_t memory_bytes() const;
  // A memory limit that suffices, at most that of the context. With more memory, tasks are fewer and larger.
  std::uint64_t least_memory_bytes() const;
  // Peak size of work folder and result, if tasks run in order and those marked if_needed do not run.
  std::uint64_t disk_bytes() const;
  // Sum over all tasks that are not marked if_needed.
  double seconds() const;

  // True if the task's output is recorded and present, was deleted because all its readers have finished, or
  // is known not to be needed.
  bool is_done(std::string_view task) const;
  // If an input turns out to be damaged or lost, the task that wrote it runs again first. Throws
  // Error(invalid_argument) if there is no such task, a task it depends on has not run, the context has
  // another seed or less memory than the plan was made with, or the work folder belongs to another plan.
  TaskOutcome run_task(const Context& context, std::string_view task) const;
  // Runs all tasks in order and calls on_task after each, and for each task that ran again as a repair. A
  // published result is read and verified before it is called done. Throws Error(cannot_create) while
  // another process works in the folder.
  void run(const Context& context,
           const std::function<void(const PlannedTask&, TaskOutcome)>& on_task = {}) const;
  // Deletes the intermediate files, about as large as the vectors, and returns their size in bytes. The
  // manifest and the checksums of the vectors stay, so that a later run() can tell that everything is done,
  // or that the vectors have changed. Does nothing before the result is published; resumes if interrupted.
  // Throws as run() does while another process works in the folder.
  std::uint64_t remove_work() const;
  // Throws Error(cannot_create) if a file system lacks room for the remaining output. Work folder and output
  // are added up if they share a file system.
  void check_disk() const;
  // Of a plan_graph: the report of the published graph. Throws Error(not_found) before it is published.
  GraphReport report() const;
  // Of a plan of a join or a deduplication (plan_join.h). Throws Error(invalid_argument) for others.
  JoinPlanReport join_report() const;

  class State;  // src/plan/engine/plan_state.h
  explicit Plan(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

struct PlanFiles {
  std::filesystem::path vectors;
  std::filesystem::path work;    // a folder for this plan alone, created if missing
  std::filesystem::path output;  // .nw
};

enum class GraphPlanMethod : std::uint8_t {
  partitions,  // overlapping partitions: a fixed number of passes over the vectors
  pairs,       // the graphs of every pair of shards are merged: about one pass per shard
};
std::string_view name(GraphPlanMethod method);
// Throws Error(invalid_argument) listing the methods.
GraphPlanMethod parse_graph_plan_method(std::string_view text);

struct GraphPlanOptions {
  std::size_t degree = 10;
  Metric metric = Metric::sqeuclidean;
  // As in KnnGraphOptions; 1 is refused, because exact search needs no plan.
  double target_recall = 0.95;
  GraphPlanMethod method = GraphPlanMethod::partitions;
  // Free text, part of the output's bytes.
  std::map<std::string, std::string> provenance = {};
};

// partitions: trains k-means centroids on a sample, assigns blocks of rows to their nearest partitions,
// compares rows within groups of partitions as large as the memory limit allows, merges the results per
// block, and measures the recall on up to 10,000 rows. Passes with other partitions follow while the target
// is not reached.
//
// pairs (GGM, section 5 of GNND): builds a graph per shard of consecutive vectors, sized so that two fit in
// memory, then merges every pair in a round-robin schedule. Every build and merge measures its own recall;
// there are no further passes.
//
// Throws Error(invalid_argument) if the context is on a CUDA device or has no memory limit,
// Error(out_of_memory) naming a sufficient limit if it is too small. Writes nothing and does not check disk
// space.
Plan plan_graph(const Context& context, const PlanFiles& files, const GraphPlanOptions& options = {});

struct IndexPlanOptions {
  // training_rows is lowered to what fits the memory limit, but not below 32 per list. VectorStorage::file is
  // refused.
  IvfOptions index = {.encoding = Pq{}};
  CalibrationOptions calibration = {};
  std::map<std::string, std::string> provenance = {};
};

// An inverted file that may be larger than memory: trains lists and quantizer on a sample, assigns and
// encodes blocks of rows, concatenates their lists, and calibrates the number of probes on the mapped result.
// Requirements on the context are those of plan_graph. The result is that of Ivf::build without a limit,
// except for provenance and training sample.
Plan plan_index(const Context& context, const PlanFiles& files, const IndexPlanOptions& options = {});

struct GraphIndexPlanOptions {
  GraphIndexOptions index = {};  // ids must be empty (ids are row numbers), graph_recall below 1
  // `queries` must be empty: calibrate the result with queries by GraphIndex::calibrate().
  GraphCalibrationOptions calibration = {};
  std::map<std::string, std::string> provenance = {};
};

// A graph index that may be larger than memory: encodes the vectors, builds the k-NN graph of their codes by
// the tasks of plan_graph, prunes it in blocks, connects all rows, and calibrates the beam on the mapped
// result. Requirements on the context are those of plan_graph; codes and edges are read through the page
// cache. The result is that of GraphIndex::build, except for the provenance and the k-NN graph, which is
// built as by plan_graph.
Plan plan_graph_index(const Context& context, const PlanFiles& files,
                      const GraphIndexPlanOptions& options = {});

}  // namespace nearwise
