// Chooses a kind of index, by estimates of build time, search time and size.
//
// Among the kinds that fit the memory limit, exact search is chosen if its queries take at most 50 us;
// otherwise the kind with the least total time, to build it and to answer all expected queries. If none fits:
// exact search if it is that fast, otherwise the kind that needs least memory. Estimates come from formulas
// with few constants, set by measurements of SIFT 1M on one machine (docs/choose/which-index.md). Use them to
// compare kinds, not to predict times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/export.h"
#include "nearwise/ivf.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

enum class IndexKind : std::uint8_t {
  exact,     // Exact
  ivf_flat,  // Ivf with Flat
  ivf_pq,    // Ivf with Pq
  graph,     // GraphIndex
};
std::string_view name(IndexKind kind);

enum class QueryPattern : std::uint8_t {
  single,  // one query at a time: latency counts
  batch,   // thousands at a time: throughput counts
};
std::string_view name(QueryPattern pattern);
QueryPattern parse_query_pattern(std::string_view text);

struct IndexRequest {
  std::size_t rows = 0;
  std::size_t dim = 0;
  ElementType element_type = ElementType::f32;
  Metric metric = Metric::sqeuclidean;
  double target_recall = 0.95;  // 1: Exact
  QueryPattern queries = QueryPattern::single;
  // Over the life of the index.
  std::uint64_t expected_queries = 1'000'000;
};

struct IndexEstimate {
  IndexKind kind = IndexKind::exact;
  VectorStorage vectors = VectorStorage::keep;  // of ivf_pq
  std::uint64_t bytes = 0;                      // of the index and its vectors, in memory
  std::uint64_t build_bytes = 0;                // peak while it is built
  double build_seconds = 0;
  double query_seconds = 0;  // time per query
  bool fits = true;          // build_bytes is within the memory limit
  double total_seconds = 0;  // to build, and for all expected queries
};

struct IndexChoice {
  std::vector<IndexEstimate> estimates = {};  // of all kinds that reach the target; the chosen one first
  std::string reason = {};                    // a sentence

  const IndexEstimate& chosen() const { return estimates.front(); }
  std::string table() const;  // the estimates as a text table
};

// Threads, memory limit and instruction set are those of the context. Throws Error(invalid_argument) for a
// request without vectors or with a target outside (0, 1].
IndexChoice choose_index(const Context& context, const IndexRequest& request);

}  // namespace nearwise
