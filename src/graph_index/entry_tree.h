// Where searches of a graph begin: a two-level k-means tree whose leaves are rows.
//
// Data of separate clusters has no edges between them: a search finds a cluster only if it begins near it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/graph_search.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise::graph_index {

// A leaf for this many rows, up to a number of leaves.
inline constexpr std::size_t rows_per_leaf = 50;
inline constexpr std::size_t max_leaves = 4096;

class EntryTree {
 public:
  EntryTree() = default;
  // codes: [rows, row_bytes]; the first `code_dim` bytes of a row are its code.
  static EntryTree train(const Context& context, MatrixView<const std::uint8_t> codes, std::size_t code_dim);
  // Of a tree of as many rows, and the rows that train() copies.
  static std::size_t leaf_count(std::size_t rows);
  static std::size_t training_rows(std::size_t rows);
  // From the parts of a file, checked by the caller.
  EntryTree(MatrixView<const std::uint8_t> codes, Matrix<std::uint8_t> top_codes,
            std::vector<std::uint32_t> ends, std::vector<std::uint32_t> rows);

  // More leaves, each in the group of the nearest top.
  void add(MatrixView<const std::uint8_t> codes, const std::vector<std::uint32_t>& rows);
  // A copy with these leaves as well.
  EntryTree with_leaves(MatrixView<const std::uint8_t> codes, const std::vector<std::uint32_t>& rows) const;

  EntryTreeView view() const { return {top_codes_, ends_, leaf_codes_, rows_}; }

 private:
  Matrix<std::uint8_t> top_codes_;
  std::vector<std::uint32_t> ends_;
  std::vector<std::uint32_t> rows_;
  Matrix<std::uint8_t> leaf_codes_;
};

}  // namespace nearwise::graph_index
