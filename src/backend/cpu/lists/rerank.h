// The second look of a search in inverted lists: the best of a query's candidates by the distance from the rows themselves.
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

// A neighbour as it is reported, and its order.
struct FoundRow {
  float key;
  Id id;
  friend bool operator<(const FoundRow& left, const FoundRow& right) {
    return left.key < right.key || (left.key == right.key && left.id < right.id);
  }
};

// The query's answers, best first, padded where there are fewer than k.
void write_found(std::span<const FoundRow> found, const ListSearchArgs& args, std::size_t query);

// For one query after the other. Not shared by threads.
class Reranker {
 public:
  Reranker(const CpuStream& stream, const ListSearchArgs& args, const ListBound& bound);
  static std::uint64_t bytes(std::size_t dim, std::size_t candidates);

  // Writes the best args.k of the rows with these ids. next: those of the query that comes then, whose rows are asked for while
  // these are looked at.
  void write_nearest(std::size_t query, std::span<const std::uint32_t> ids,
                     std::span<const std::uint32_t> next);

 private:
  struct Estimate {
    double lowest;  // a bound of the row's value
    std::uint32_t id;
  };

  void estimate(std::span<const std::uint32_t> ids, std::span<const std::uint32_t> next);
  void fetch(std::uint32_t id) const;

  const ListSearchArgs& args_;
  const ListBound& bound_;
  const std::size_t row_bytes_;
  const std::size_t ahead_;  // rows
  RowEstimator estimator_;
  RowEvaluator evaluator_;
  Buffer<Estimate> estimates_;  // [candidates]
  Buffer<FoundRow> found_;      // [k]
  bool fetched_ = false;        // the first rows of the query to come
};

}  // namespace nearwise::cpu
