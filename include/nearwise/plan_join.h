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
  partitions,  // the vectors of each k-means partition, with copies of those near its border
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

// The output is that of save(SavedPairs). Requirements on the context are those of plan_graph; the memory
// limit does not bound the number of pairs. Throws Error(invalid_argument) if the threshold is not finite.
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
  // Copies stored per vector, including the one in its home partition, and pairs compared. Method pairs: 1,
  // and all pairs.
  double predicted_copies = 1;
  double predicted_comparisons = 0;
  // Actual numbers of method partitions; nullopt until all pairs have been compared, and after remove_work().
  std::optional<double> copies = {};
  std::optional<double> comparisons = {};
};

}  // namespace nearwise
