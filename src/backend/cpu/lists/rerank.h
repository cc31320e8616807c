// Re-ranking of a list search: selects the best of a query's candidates by distance to the vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/lists/list_bound.h"
#include "backend/cpu/lists/list_rows.h"
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
  Reranker(const CpuStream& stream, const ListSearchArgs& args, const ListNumbers& numbers,
           const ListBound& bound);
  static std::uint64_t bytes(std::size_t dim, std::size_t candidates);

  // Writes the best args.k of the vectors with these numbers (ListNumbers). next: the candidates of the query
  // of the next call, prefetched while this one is re-ranked.
  void write_nearest(std::size_t query, std::span<const std::uint32_t> rows,
                     std::span<const std::uint32_t> next);

 private:
  struct Candidate {
    const std::byte* vector;  // as it is kept
    const Id* id;
  };
  struct Estimate {
    double lowest;  // lower bound of the value
    std::uint32_t candidate;
  };

  void find(std::span<const std::uint32_t> rows, Buffer<Candidate>& out) const;
  void estimate(std::size_t count, std::size_t next);
  const std::byte* read(const Candidate& candidate, std::size_t place);
  void prefetch_vector(const Candidate& candidate) const;

  const ListSearchArgs& args_;
  const ListNumbers& numbers_;
  const ListBound& bound_;
  const std::size_t vector_bytes_;
  const std::size_t ahead_;  // prefetch distance in vectors
  const RowsView shape_;     // type and dimension of the vectors as they are read
  RowEstimator estimator_;
  RowEvaluator evaluator_;
  Buffer<Candidate> candidates_;  // [candidates]
  Buffer<Candidate> next_;        // of the next query
  Buffer<Estimate> estimates_;    // [candidates]
  Buffer<FoundRow> found_;        // [k]
  Buffer<std::byte> decoded_;     // [RowEvaluator::batch] vectors; empty if they are read in place
  bool prefetched_ = false;       // whether next_ holds this query's candidates, and the first are prefetched
};

}  // namespace nearwise::cpu
