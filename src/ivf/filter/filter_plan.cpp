#include "ivf/filter/filter_plan.h"

#include <algorithm>
#include <limits>

#include "core/checked.h"
#include "ivf/filter/allowed_entries.h"
#include "ops/filter/filter_strategy.h"
#include "ops/knn_plan.h"

namespace nearwise::ivf {
namespace {

// On one thread: SIFT1M, 16-byte codes (Sapphire Rapids, 2026-11-18).
constexpr double code_ns = 3;         // scanning one code
constexpr double candidate_ns = 500;  // re-ranking one candidate: a cache miss
constexpr double list_ns = 300;       // a query's tables for one list
constexpr double byte_ns = 0.1;       // reading a vector for one query
// Exact search of a batch, multiplications and additions: between AVX2 (100), VNNI (400) and AMX (1000), so
// that the estimate is within a factor of about four on each of them (choose_scan.cpp).
constexpr double operations_per_ns = 300;
// Copies that are small enough to be kept are expected to serve this many queries.
constexpr double queries_of_copies = 1000;

}  // namespace

IvfSearchPlan plan_filtered(const FilteredShape& shape) {
  IvfSearchPlan plan = {.allowed = shape.allowed, .lists = shape.lists, .scanned = shape.scanned};
  if (shape.allowed == 0 || shape.lists == 0) return plan;
  const auto allowed = static_cast<double>(shape.allowed);
  const auto queries = static_cast<double>(std::max<std::size_t>(1, shape.queries));
  const double batch_ns = 2 * static_cast<double>(shape.dim) / operations_per_ns;
  const double compare_ns = shape.queries <= max_direct_queries
                                ? std::max(batch_ns, byte_ns * static_cast<double>(shape.vector_bytes))
                                : batch_ns;
  const double copy_ns = gather_ns(shape.vector_bytes);
  const bool keeps_copies = shape.allowed * shape.vector_bytes <= AllowedEntries::max_packed_bytes;
  const double shared_by = keeps_copies ? std::max(queries, queries_of_copies) : queries;
  plan.exact_cost = shape.vector_bytes == 0 ? std::numeric_limits<double>::infinity()
                                            : allowed * (compare_ns + copy_ns / shared_by);

  const std::size_t scanned = std::min(shape.scanned, shape.allowed);
  plan.probes = std::clamp<std::size_t>(divide_up(scanned * shape.lists, shape.allowed), 1, shape.lists);
  // Entries are copied together before they are scanned, once for all queries that probe their list.
  const double copied = std::min(allowed, static_cast<double>(scanned) * queries) / queries;
  plan.lists_cost = static_cast<double>(scanned) * (shape.is_flat ? compare_ns : code_ns) +
                    static_cast<double>(plan.probes) * list_ns +
                    static_cast<double>(shape.candidates) * candidate_ns +
                    copied * (shape.is_flat ? copy_ns : code_ns);
  // If all allowed vectors would be scanned anyway, exact distances find more of the neighbours.
  const bool scans_all = scanned == shape.allowed && shape.vector_bytes != 0;
  plan.exact = !shape.has_fixed_probes && (scans_all || plan.exact_cost <= plan.lists_cost);
  if (plan.exact) plan.probes = 0;
  return plan;
}

}  // namespace nearwise::ivf
