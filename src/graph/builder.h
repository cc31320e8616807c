// The steps of a build: cells, rounds of descent, and a look at the recall after each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "backend/dispatch.h"
#include "core/memory.h"
#include "graph/recall_sample.h"
#include "nearwise/knn_graph.h"

namespace nearwise::graph {

// Numbers that were measured (docs/algorithms/knn-graph.md says how).
struct Tuning {
  std::size_t list = 0;                      // entries of a row's list, at least the degree
  std::size_t overlap = 8;                   // cells that a row is in
  std::size_t cell_rows = 2000;              // members of a cell, on average
  std::size_t sample = 16;                   // fresh, and other, neighbours that meet, in either direction
  std::size_t measured = 2000;               // rows of the recall sample
  std::size_t exact_rows = 64'000;           // up to here exact search is faster
  std::size_t last_resort_rows = 2'000'000;  // up to here it is done where nothing else reaches the recall
  std::size_t attempts = 3;                  // with other cells
  std::size_t rounds = 8;                    // of descent, after each
};
Tuning usual_tuning(std::size_t degree, double recall);

// build_knn_graph with other numbers.
KnnGraph build(const Context& context, const RowsView& rows, const KnnGraphOptions& options,
               const Tuning& tuning);

class Builder {
 public:
  Builder(const Context& context, const RowsView& rows, const KnnGraphOptions& options, const Tuning& tuning);

  // Bytes on the budget with which it works, its result among them.
  static std::uint64_t bytes(const Context& context, const RowsView& rows, const KnnGraphOptions& options,
                             const Tuning& tuning);

  // All members of overlapping cells meet. attempt: each has other cells.
  void join_cells(std::uint64_t attempt);
  // Neighbours of neighbours meet.
  void descend();

  // What the steps so far took, in pairs of exact search that take as long.
  double spent_pairs() const { return spent_pairs_; }
  // Entries of all lists that came in since the last step but one.
  std::uint64_t updates() const;
  RecallEstimate recall(const RecallSample& sample) const;
  Neighbors finish() const;

 private:
  void fill_lists();

  const Context& context_;
  const RowsView rows_;
  const KnnGraphOptions& options_;
  const Tuning tuning_;
  std::unique_ptr<Stream> stream_;
  Buffer<std::uint32_t> order_;     // [rows] the row at each place
  Buffer<std::uint32_t> place_of_;  // [rows] its inverse
  Buffer<NeighborEntry> lists_;     // [rows, list] by place
  std::vector<float> centre_;
  std::unique_ptr<JoinState> state_;
  std::uint64_t rounds_ = 0;
  double spent_pairs_ = 0;
};

}  // namespace nearwise::graph
