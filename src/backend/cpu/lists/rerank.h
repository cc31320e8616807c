// Re-ranking of a list search: selects the best of a query's candidates by distance to the original vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/lists/list_bound.h"
#include "backend/cpu/rows/row_estimator.h"
#include "backend/cpu/rows/row_evaluator.h"
#include "backend/cpu/stream.h"
#include "backend/ops.h"
#include "core/memory.h"

namespace nearwise::cpu {

// A reported neighbor; ordered by key, then id.
struct FoundRow {
  float key;
  Id id;
  friend bool operator<(const FoundRow& left, const FoundRow& right) {
    return left.key < right.key || (left.key == right.key && left.id < right.id);
  }
};

// Writes the query's results, best first, padded if fewer than k.
void write_found(std::span<const FoundRow> found, const ListSearchArgs& args, std::size_t query);

// Re-ranks one query at a time. Not thread-safe.
class Reranker {
 public:
  Reranker(const CpuStream& stream, const ListSearchArgs& args, const ListBound& bound);
  static std::uint64_t bytes(std::size_t dim, std::size_t candidates);

  // Writes the best args.k of the vectors with these ids. next: the next query's candidates, prefetched while
  // this one is re-ranked.
  void write_nearest(std::size_t query, std::span<const std::uint32_t> ids,
                     std::span<const std::uint32_t> next);

 private:
  struct Estimate {
    double lowest;  // lower bound of the value
    std::uint32_t id;
  };

  void estimate(std::span<const std::uint32_t> ids, std::span<const std::uint32_t> next);
  void prefetch_row(std::uint32_t id) const;

  const ListSearchArgs& args_;
  const ListBound& bound_;
  const std::size_t row_bytes_;
  const std::size_t ahead_;  // prefetch distance in vectors
  RowEstimator estimator_;
  RowEvaluator evaluator_;
  Buffer<Estimate> estimates_;  // [candidates]
  Buffer<FoundRow> found_;      // [k]
  bool prefetched_ = false;     // whether the next query's first vectors were prefetched
};

}  // namespace nearwise::cpu
