// Rows that can be reached from row 0, and rows that reach it. Lists are read in the order of rows as long as
// that is fast: they may be in files larger than memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/context_state.h"
#include "core/memory.h"
#include "graph_index/edges/edge_changes.h"
#include "nearwise/context.h"

namespace nearwise::graph_index {

// A bit per row.
class RowMarks {
 public:
  RowMarks(MemoryBudget& budget, std::size_t rows);

  bool has(std::size_t row) const { return (words_[row / 64] >> row % 64 & 1) != 0; }
  void set(std::size_t row) { words_[row / 64] |= std::uint64_t{1} << row % 64; }
  void clear(std::size_t row) { words_[row / 64] &= ~(std::uint64_t{1} << row % 64); }
  std::span<const std::uint64_t> words() const { return words_.span(); }

 private:
  Buffer<std::uint64_t> words_;
};

// The rows that have an edge to each of some rows, ascending.
class SourcesOfSome {
 public:
  // Of the rows that are not marked.
  SourcesOfSome(const Context& context, const EdgeChanges& edges, const RowMarks& marks);
  // What it takes of the budget.
  static std::uint64_t bytes(const Context& context, const EdgeChanges& edges, const RowMarks& marks);

  std::span<const std::uint32_t> of(std::uint32_t row) const {
    const std::size_t place = place_of(row);
    return sources_.span().subspan(offsets_[place], offsets_[place + 1] - offsets_[place]);
  }

 private:
  std::size_t place_of(std::uint32_t row) const;

  RowMarks left_out_;
  Buffer<std::uint32_t> before_;  // other rows before each word of `left_out_`
  Buffer<std::uint64_t> offsets_;
  Buffer<std::uint32_t> sources_;
};

RowMarks reached_rows(const Context& context, const EdgeChanges& edges);

struct ReachingRows {
  RowMarks marks;
  std::optional<SourcesOfSome> sources;  // of all rows that are not marked; none: there are no such rows
};
ReachingRows reaching_rows(const Context& context, const EdgeChanges& edges);

// Marks all rows that follow from those in `queue`, which are marked. next_of(row): the rows that follow
// directly, up to the first no_edge.
template <typename NextOf>
void mark_following(const Context& context, const NextOf& next_of, std::vector<std::uint32_t>& queue,
                    RowMarks& marks) {
  std::size_t steps = 0;
  while (!queue.empty()) {
    if (++steps % 4096 == 0) context.state().cancel.check();
    const std::uint32_t row = queue.back();
    queue.pop_back();
    for (const auto next : next_of(row)) {
      if (next == static_cast<decltype(next)>(no_edge)) break;
      if (marks.has(static_cast<std::size_t>(next))) continue;
      marks.set(static_cast<std::size_t>(next));
      queue.push_back(static_cast<std::uint32_t>(next));
    }
  }
}

}  // namespace nearwise::graph_index
