// The steps of a graph build or change: partitions, comparisons with all rows, NN-Descent iterations, recall.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/dispatch.h"
#include "core/memory.h"
#include "graph/build/partitions.h"
#include "graph/recall_sample.h"
#include "nearwise/graph/knn_graph.h"

namespace nearwise::graph {

// Measured defaults; docs/algorithms/knn-graph.md has the tables.
struct Tuning {
  std::size_t list = 0;               // entries per row while building, at least the degree
  std::size_t overlap = 8;            // partitions per row, at most; 0: groups are given to join()
  std::size_t partition_rows = 2000;  // mean rows per partition at full overlap
  std::size_t sample = 16;  // new, and old, neighbours joined per row and direction (NN-Descent's rho * K)
  std::size_t measured = 2000;      // rows of the recall sample
  std::size_t exact_rows = 64'000;  // up to here exact search is faster
  // Up to here rows that are new to a graph, or whose lists still change, are compared with all rows.
  std::size_t max_compared_rows = 4000;
  std::size_t last_resort_rows =
      2'000'000;             // up to here exact search runs if nothing else reaches the target
  std::size_t attempts = 3;  // with different partitions
  std::size_t rounds = 8;    // NN-Descent iterations per attempt
};
Tuning default_tuning(std::size_t degree, double recall);

// build_knn_graph with the given tuning.
KnnGraph build(const Context& context, const RowsView& rows, const KnnGraphOptions& options,
               const Tuning& tuning);

// A neighbour that a row starts with.
struct InitialNeighbor {
  std::uint32_t row = 0;
  float distance = 0;
};
// Appends the initial neighbours of a row, in any order. Called on several threads at once, as is Candidates.
using InitialNeighbors = std::function<void(std::size_t row, std::vector<InitialNeighbor>& found)>;
// Appends rows to compare a row with, the most promising first; duplicates are allowed.
using Candidates = std::function<void(std::size_t row, std::vector<std::uint32_t>& found)>;

class Builder {
 public:
  // sample: if given, the overlap is reduced to what is predicted to reach the target recall.
  Builder(const Context& context, const RowsView& rows, const KnnGraphOptions& options, const Tuning& tuning,
          const RecallSample* sample = nullptr);

  // Upper bound on the budget, including the result.
  static std::uint64_t bytes(const Context& context, const RowsView& rows, const KnnGraphOptions& options,
                             const Tuning& tuning);

  // Expected durations for shares of progress, in pairs of exact search.
  static double partitions_cost(const RowsView& rows, const KnnGraphOptions& options, const Tuning& tuning);
  static double round_cost(const RowsView& rows, const Tuning& tuning);

  // The contexts of steps receive their progress; everything else belongs to that of the constructor.

  // Compares all rows within overlapping partitions. attempt: selects other partitions.
  void join_partitions(const Context& context, std::uint64_t attempt);
  // Compares the members of these groups, whose places are row numbers.
  void join(const Context& context, const Groups& groups);
  // First step of a merge: rows below left_rows are compared with the other rows of their partitions.
  void join_sides(const Context& context, std::size_t left_rows, const InitialNeighbors& initial);
  // First step of an update: lists start with `initial`. Places are row numbers, so that ties resolve as in
  // exact search.
  void begin(const InitialNeighbors& initial);
  // Compares each of these distinct rows with all rows.
  void compare_with_all(const Context& context, std::span<const std::uint32_t> rows);
  // Compares each of these rows with its candidates.
  void compare_candidates(const Context& context, std::span<const std::uint32_t> rows,
                          const Candidates& candidates);
  // Fills short lists from rows at neighbouring places.
  void fill_lists();
  // One NN-Descent iteration.
  void descend(const Context& context);

  // Cost of the steps so far, in pairs of exact search that take as long.
  double spent_pairs() const { return spent_pairs_; }
  // Entries added since the last step but one, over all lists.
  std::uint64_t updates() const;
  // Rows with such entries among their `degree` nearest, ascending.
  std::vector<std::uint32_t> changing_rows() const;
  RecallEstimate recall(const RecallSample& sample) const;
  Neighbors finish() const;

 private:
  // initial: may be null.
  void start(const InitialNeighbors* initial);
  void join_groups(const Context& context, const Groups& groups);
  void put_initial(const InitialNeighbors& initial);
  // may_join(row, other): whether rows of one partition are compared.
  void choose_overlap(Partitions& partitions,
                      const std::function<bool(std::size_t row, std::size_t other)>& may_join) const;
  bool knows(std::size_t row, std::size_t other) const;
  std::size_t max_candidates() const;
  // An iteration on backends that do not draw neighbourhoods themselves.
  void join_neighborhoods(const Random& random, ProgressMeter& progress);

  const Context& context_;
  const RowsView rows_;
  const KnnGraphOptions& options_;
  const Tuning tuning_;
  const RecallSample* const sample_;
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
