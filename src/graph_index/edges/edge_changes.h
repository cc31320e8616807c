// Edges added to a finished graph, kept apart from its lists: these may be in files larger than memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "backend/graph_search.h"
#include "core/memory.h"
#include "nearwise/matrix.h"

namespace nearwise::graph_index {

// The lists of all rows, in one matrix or in blocks of as many rows each, but for the last.
class EdgeLists {
 public:
  explicit EdgeLists(MatrixView<const std::int32_t> all) : EdgeLists(std::vector{all}) {}
  explicit EdgeLists(std::vector<MatrixView<const std::int32_t>> blocks);

  std::size_t rows() const { return rows_; }
  std::size_t degree() const { return blocks_.front().cols(); }
  std::span<const std::int32_t> row(std::size_t row) const {
    return blocks_[row / block_rows_].row(row % block_rows_);
  }

 private:
  std::vector<MatrixView<const std::int32_t>> blocks_;
  std::size_t block_rows_;
  std::size_t rows_ = 0;
};

// Puts edges into a list: behind its last one, and where it is full in place of the farthest. Returns the
// number of those replaced.
std::size_t put_edges(std::span<std::int32_t> list, std::span<const std::int32_t> added);

// Lists with added edges. Not thread-safe.
class EdgeChanges {
 public:
  // Takes 4 bytes per row, and 8 per added edge, twice that while they grow.
  EdgeChanges(MemoryBudget& budget, EdgeLists lists);

  std::size_t rows() const { return lists_.rows(); }
  // With what was added; `scratch` then holds it. no_edge ends it.
  std::span<const std::int32_t> list(std::uint32_t row, std::vector<std::int32_t>& scratch) const;
  // Whether the edge is there now: at most a quarter of a full list is replaced.
  bool add(std::uint32_t from, std::uint32_t to);
  // visit(row, added) for all rows with added edges, ascending; edges in the order of put_edges().
  template <typename Visit>
  void for_each(const Visit& visit) const {
    std::vector<std::int32_t> added;
    for (std::uint32_t row = 0; row < rows(); ++row) {
      if (first_[row] == none) continue;
      added_to(row, added);
      visit(row, std::span<const std::int32_t>(added));
    }
  }

 private:
  static constexpr std::uint32_t none = 0xFFFF'FFFF;

  struct Added {
    std::int32_t target;
    std::uint32_t next;  // of the same row
  };

  void added_to(std::uint32_t row, std::vector<std::int32_t>& added) const;
  bool append(std::uint32_t row, std::int32_t target);

  MemoryBudget& budget_;
  const EdgeLists lists_;
  Buffer<std::uint32_t> first_;  // of each row
  Buffer<Added> added_;
  std::size_t count_ = 0;
};

}  // namespace nearwise::graph_index
