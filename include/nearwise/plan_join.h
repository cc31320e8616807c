// Plans of threshold joins and the removal of near-duplicates: vectors and pairs may be larger than memory.
//
// No pair within the threshold is missed, and each is decided by its reported distance. So the results are
// those of threshold_join() and dedup(), whatever the method: save() of what these return writes the bytes
// that the plan publishes, for any memory limit.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "nearwise/context.h"
#include "nearwise/dedup.h"
#include "nearwise/export.h"
#include "nearwise/plan.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

// Both compare every pair that may be within the threshold (docs/algorithms/plans.md).
enum class JoinMethod : std::uint8_t {
  automatic,   // partitions where they are predicted to cost less than all pairs
  partitions,  // the vectors of each k-means partition, into which those near its borders are copied
  pairs,       // all vectors, in blocks
};
std::string_view name(JoinMethod method);  // automatic: "auto"
// Throws Error(invalid_argument) listing the methods.
JoinMethod parse_join_method(std::string_view text);

struct JoinPlanOptions {
  Metric metric = Metric::sqeuclidean;
  std::map<std::string, std::string> provenance = {};  // free text, part of the output's bytes
  // partitions needs a distance: for inner_product, automatic is pairs.
  JoinMethod method = JoinMethod::automatic;
};

// The output is that of save(SavedPairs). The memory limit is as in plan_graph; it does not bound the number
// of pairs. Throws Error(invalid_argument) if the threshold is not finite.
Plan plan_threshold_join(const Context& context, const PlanFiles& files, float threshold,
                         const JoinPlanOptions& options = {});

struct DedupPlanOptions {
  DedupOptions dedup = {};  // scores are copied
  std::map<std::string, std::string> provenance = {};
  JoinMethod method = JoinMethod::automatic;
};

// The output is that of save(SavedDeduplication). Needs 12 to 41 bytes of memory for each vector, depending
// on the options.
Plan plan_dedup(const Context& context, const PlanFiles& files, float threshold,
                const DedupPlanOptions& options = {});

// How a plan finds the pairs. The result is complete with either method.
struct JoinPlanReport {
  JoinMethod method = JoinMethod::pairs;  // partitions or pairs
  std::size_t partitions = 0;             // planned; 0: method pairs
  // Vectors stored per vector, the one at home included, and compared pairs. Of method pairs: 1, and all.
  double predicted_copies = 1;
  double predicted_comparisons = 0;
  // Found by method partitions; none before all pairs are compared, and after remove_work().
  std::optional<double> copies = {};
  std::optional<double> comparisons = {};
};

}  // namespace nearwise
