// The tasks of a graph by pairs of shards (GGM, section 5 of Wang et al.: docs/scale.md), in the terms of plan/tasks/graph_work.h.
//
//   build    a shard: consecutive rows that fit twice in memory  -> their graph among themselves
//   merge    two shards: rows, graphs, best neighbours so far     -> the best neighbours so far of both
//   measure  a sample of rows, all shards                         -> the recall
//   finish   all shards                                           -> the graph
//
// A block of GraphShape is a shard. Two shards find neighbours in each other by their own graphs alone, so that what is found does
// not depend on the order of merges; the best so far come from the last merge that either was in (plan/pairs/pair_schedule.h).
#pragma once

#include <cstddef>
#include <stop_token>
#include <string>
#include <vector>

#include "plan/pairs/pair_schedule.h"
#include "plan/partition/graph_costs.h"
#include "plan/tasks/graph_tasks.h"
#include "plan/tasks/graph_work.h"
#include "plan/tasks/partial_neighbors.h"

namespace nearwise::plan {

// Throws Error(out_of_memory) where the limit is too small.
GraphShape shape_of_pairs(const Context& context, const RowsView& rows, const GraphPlanOptions& options);

// All but the last of a plan.
void add_pairs(GraphTasks& tasks, const Context& context, const GraphWork& work, const GraphCosts& costs);

std::string build_shard_name(std::size_t shard);
std::string merge_pair_name(const Pairing& pairing);

void build_shard(const Context& context, const GraphWork& work, std::size_t shard);
// The vectors of both will be read soon.
void ask_for_pair(const GraphWork& work, const Pairing& pairing, const std::stop_token& stop);
void merge_pair(const Context& context, const GraphWork& work, std::size_t round, const Pairing& pairing);

// The task whose output has the best neighbours of a shard's rows before a round, and the sections' prefix there.
struct ShardVersion {
  std::string task;
  std::string prefix;
};
ShardVersion version_before(const GraphWork& work, std::size_t shard, std::size_t round);
// After all rounds.
std::vector<MergedBlock> paired_shards(const GraphWork& work);

// How a shard is built and how two are merged: as in memory.
KnnGraphOptions shard_options(const GraphWork& work);
graph::Tuning shard_tuning(const GraphPlanOptions& options);
graph::Tuning pair_tuning(const GraphPlanOptions& options);

}  // namespace nearwise::plan
