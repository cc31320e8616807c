// The steps of a build or a change: partitions, rows that meet all others, rounds of descent, and a look at the recall after each.
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
#include "graph/build/recall_sample.h"
#include "nearwise/knn_graph.h"

namespace nearwise::graph {

// Numbers that were measured (docs/algorithms/knn-graph.md says how).
struct Tuning {
  std::size_t list = 0;               // entries of a row's list, at least the degree
  std::size_t overlap = 8;            // partitions that a row is in, at the most; 0: they are given to join()
  std::size_t partition_rows = 2000;  // members of a partition, on average, if it is in as many
  std::size_t sample = 16;            // new, and other, neighbours that meet, in either direction
  std::size_t measured = 2000;        // rows of the recall sample
  std::size_t exact_rows = 64'000;    // up to here exact search is faster
  std::size_t max_compared_rows =
      4000;  // up to here rows that are new to a graph, or still change, meet all others
  std::size_t last_resort_rows = 2'000'000;  // up to here it is done where nothing else reaches the recall
  std::size_t attempts = 3;                  // with other partitions
  std::size_t rounds = 8;                    // of descent, after each
};
Tuning default_tuning(std::size_t degree, double recall);

// build_knn_graph with other numbers.
KnnGraph build(const Context& context, const RowsView& rows, const KnnGraphOptions& options,
               const Tuning& tuning);

// A neighbour that a row has from the start.
struct InitialNeighbor {
  std::uint32_t row = 0;
  float distance = 0;
};
// Appends what is known of a row's neighbours, in any order. Called by several threads at once, as is the next.
using InitialNeighbors = std::function<void(std::size_t row, std::vector<InitialNeighbor>& found)>;
// Appends rows that a row should meet, the most promising first; some may come twice.
using Candidates = std::function<void(std::size_t row, std::vector<std::uint32_t>& found)>;

class Builder {
 public:
  // sample: if there is one, rows are in no more partitions than it takes to get to the recall.
  Builder(const Context& context, const RowsView& rows, const KnnGraphOptions& options, const Tuning& tuning,
          const RecallSample* sample = nullptr);

  // Bytes on the budget with which it works, its result among them.
  static std::uint64_t bytes(const Context& context, const RowsView& rows, const KnnGraphOptions& options,
                             const Tuning& tuning);

  // All members of overlapping partitions meet. attempt: each has other partitions.
  void join_partitions(std::uint64_t attempt);
  // The members of these groups meet, whose places are row numbers.
  void join(const Groups& groups);
  // A first step for two sides, whose own neighbours are known: members of partitions meet those of the other side. Rows below
  // left_rows are one side.
  void join_sides(std::size_t left_rows, const InitialNeighbors& initial);
  // Another first step: lists hold what is known, and places are row numbers, so that ties go as in exact search.
  void begin(const InitialNeighbors& initial);
  // Each of these rows, which are different, meets all rows.
  void compare_with_all(std::span<const std::uint32_t> rows);
  // Each of these rows meets its candidates.
  void compare_candidates(std::span<const std::uint32_t> rows, const Candidates& candidates);
  // Lists that are short meet rows nearby.
  void fill_lists();
  // Neighbours of neighbours meet.
  void descend();

  // What the steps so far took, in pairs of exact search that take as long.
  double spent_pairs() const { return spent_pairs_; }
  // Entries of all lists that came in since the last step but one.
  std::uint64_t updates() const;
  // The rows with such entries among their nearest neighbours, in their order.
  std::vector<std::uint32_t> changing_rows() const;
  RecallEstimate recall(const RecallSample& sample) const;
  Neighbors finish() const;

 private:
  // known: none, or what lists hold from the start.
  void start(const InitialNeighbors* initial);
  void put_initial(const InitialNeighbors& initial);
  // may_meet(row, other): whether members of one partition do.
  void choose_overlap(Partitions& partitions,
                      const std::function<bool(std::size_t row, std::size_t other)>& may_join) const;
  bool knows(std::size_t row, std::size_t other) const;
  std::size_t max_candidates() const;
  // A round whose neighbourhoods are drawn here.
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
