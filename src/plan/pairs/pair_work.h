// The tasks of method `pairs` (GGM, section 5 of Wang et al.; docs/algorithms/plans.md), in the terms of
// plan/tasks/graph_work.h.
//
//   build    a shard: consecutive rows, two of which fit in memory  -> the graph of the shard
//   merge    two shards: rows, graphs, best neighbours so far        -> the best neighbours so far of both
//   measure  a sample of rows, all shards                            -> the recall
//   finish   all shards                                              -> the graph
//
// A block of GraphShape is a shard. A merge starts from the shards' own graphs, so that its result does not
// depend on the order of merges; the best neighbours so far come from the last merge of either shard
// (plan/pairs/pair_schedule.h).
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

// Throws Error(out_of_memory) if the limit is too small.
GraphShape shape_of_pairs(const Context& context, const RowsView& rows, const GraphPlanOptions& options);

// Adds all tasks but `finish`.
void add_pairs(GraphTasks& tasks, const Context& context, const GraphWork& work, const GraphCosts& costs);

std::string build_shard_name(std::size_t shard);
std::string merge_pair_name(const Pairing& pairing);

void build_shard(const Context& context, const GraphWork& work, std::size_t shard);
// Prefetches the vectors of both shards.
void prefetch_pair(const GraphWork& work, const Pairing& pairing, const std::stop_token& stop);
void merge_pair(const Context& context, const GraphWork& work, std::size_t round, const Pairing& pairing);

// The task whose output holds a shard's best neighbours before a round, and the prefix of its sections.
struct ShardVersion {
  std::string task;
  std::string prefix;
};
ShardVersion version_before(const GraphWork& work, std::size_t shard, std::size_t round);
// After all rounds.
std::vector<MergedBlock> paired_shards(const GraphWork& work);

// Options of the builds and merges, which run as in memory.
KnnGraphOptions shard_options(const GraphWork& work);
graph::Tuning shard_tuning(const GraphPlanOptions& options);
graph::Tuning pair_tuning(const GraphPlanOptions& options);

}  // namespace nearwise::plan
