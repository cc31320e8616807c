// Plans of threshold joins and the removal of near-duplicates: vectors and pairs may be larger than memory.
//
// All pairs of vectors are compared, block of rows by block of rows, so the results are those of
// threshold_join() and dedup(): save() of what these return writes the bytes that the plan publishes, for any
// memory limit.
#pragma once

#include <map>
#include <string>

#include "nearwise/context.h"
#include "nearwise/dedup.h"
#include "nearwise/export.h"
#include "nearwise/plan.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

struct JoinPlanOptions {
  Metric metric = Metric::sqeuclidean;
  std::map<std::string, std::string> provenance = {};  // free text, part of the output's bytes
};

// The output is that of save(SavedPairs). The memory limit is as in plan_graph; it does not bound the number
// of pairs. Throws Error(invalid_argument) if the threshold is not finite.
Plan plan_threshold_join(const Context& context, const PlanFiles& files, float threshold,
                         const JoinPlanOptions& options = {});

struct DedupPlanOptions {
  DedupOptions dedup = {};  // scores are copied
  std::map<std::string, std::string> provenance = {};
};

// The output is that of save(SavedDeduplication). Needs 12 to 41 bytes of memory for each vector, depending
// on the options.
Plan plan_dedup(const Context& context, const PlanFiles& files, float threshold,
                const DedupPlanOptions& options = {});

}  // namespace nearwise
