// Range search in a base that may be packed already.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/memory.h"
#include "nearwise/exact.h"
#include "ops/exact_search.h"

namespace nearwise {

// Checks the arguments. prepared: the packed base for queries of this type, or null.
RangeNeighbors search_range(const Context& context, const RowsView& queries, const RowsView& base,
                            float radius, const RangeOptions& options, const PreparedBase* prepared);

// All rows of the selection, which names no list of rows.
RangeNeighbors search_range_rows(const Context& context, const RowsView& queries, const RowsView& base,
                                 float radius, Metric metric, const PreparedBase* prepared,
                                 const RowSelection& selection);

// Best first, then by id.
void sort_range_row(Metric metric, RangeRow& row);

// Candidate lists of a range search are sized as for a search of about this many neighbours.
inline constexpr std::size_t range_like_k = 64;

// All answers of a tile of queries, best first. Ids are row numbers of the base plus id_offset.
void search_range_tile(const ExactSearch& search, float radius, const RowsView& tile,
                       const PreparedRows& prepared, Id id_offset, std::span<RangeRow> rows);

// Answers of all queries, tile after tile, within the memory limit. How many there are is not known in
// advance: what the first queries took tells the need of all.
class RangeAnswers {
 public:
  RangeAnswers(const char* operation, MemoryBudget& budget, std::size_t queries)
      : operation_(operation), budget_(budget), rows_(queries) {}

  // search fills the rows of queries [first, first + count). If memory runs out, the error estimates a
  // sufficient limit.
  void fill(std::size_t first, std::size_t count, const std::function<void(std::span<RangeRow>)>& search);
  RangeNeighbors concatenated() const;

 private:
  [[noreturn]] void refuse(std::size_t done) const;

  const char* operation_;
  MemoryBudget& budget_;
  std::vector<RangeRow> rows_;
  std::vector<Reservation> reservations_;
  std::uint64_t bytes_ = 0;
};

}  // namespace nearwise
