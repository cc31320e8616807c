// The graph of every row's nearest other rows, built without comparing all pairs, at a recall that is measured.
//
// Rows are gathered in overlapping k-means partitions, whose members meet, and then meet the neighbours of their neighbours
// (NN-Descent) until a sample of rows, compared with exact search, shows the recall that was asked for. Where searching
// exactly is faster, or nothing else gets there, the graph is exact. docs/algorithms/knn-graph.md has the whole.
//
// The same rows, options and seed of the context give the same bytes at any number of threads and on every instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/types.h"

namespace nearwise {

// Measured on a sample of rows: a neighbour counts if it is no farther than the last of the exact ones.
struct RecallEstimate {
  double value = 0;
  // The interval that holds the recall of the whole graph with 95 % confidence; both are the value where all rows were
  // looked at, or the graph was made by exact search.
  double low = 0;
  double high = 0;
  std::size_t rows = 0;  // of the sample
};

enum class GraphMethod : std::uint8_t {
  exact,       // all pairs
  nn_descent,  // partitions, then neighbours of neighbours
};
std::string_view name(GraphMethod method);

// One pass over the rows: 0 is their partitions, or the first step of a change, the others are rounds of descent.
struct GraphRound {
  std::size_t round = 0;
  std::uint64_t updates = 0;  // entries of all lists that are new since the round before
  RecallEstimate recall;
};

struct GraphReport {
  GraphMethod method = GraphMethod::exact;
  RecallEstimate recall;
  bool reached = true;  // whether recall.low is at least what was asked for
  std::vector<GraphRound> rounds;
};

// Rows of `neighbors` are the graph's nodes, its ids their row numbers. Every row has `degree` different neighbours and
// never itself, best first, the lower id first in a tie; only where there are no more other rows does it end in no_id.
// Distances are as exact search reports them.
struct KnnGraph {
  Neighbors neighbors;  // [rows, degree]
  Metric metric = Metric::sqeuclidean;
  GraphReport report;

  std::size_t rows() const { return neighbors.ids.rows(); }
  std::size_t degree() const { return neighbors.ids.cols(); }
  // Throws Error(corrupt) naming the first row that breaks the contract.
  void validate() const;
};

struct KnnGraphOptions {
  std::size_t degree = 10;
  Metric metric = Metric::sqeuclidean;
  // Of all true neighbours, the share that the graph must hold: rounds go on until the lower end of the measured interval
  // is there. 1: exact search.
  double recall = 0.95;
  // Called after every round, on the calling thread.
  std::function<void(const GraphRound&)> on_round = {};
};

// Rows are on the host, at most 2^31 - 1 of them. Throws Error(invalid_argument) naming the first with NaN or infinity.
KnnGraph build_knn_graph(const Context& context, RowsView rows, const KnnGraphOptions& options = {});

struct KnnGraphChangeOptions {
  // As in KnnGraphOptions. 1: exact search, unless the graph is exact and few rows are concerned.
  double recall = 0.95;
  std::function<void(const GraphRound&)> on_round = {};
};

// Changes of a graph give another, of the same degree and metric, under the contract and with a report as if it had been
// built; the graph that is given is left as it is. It must be of the given rows: one that breaks its contract, or has other
// distances (a sample is looked at), is refused with Error(invalid_argument). The same input and seed give the same bytes.

// rows: those of `left`, then those of `right`, whose ids are increased by the number of the former. Rows of one side meet
// those of the other only, so that merging costs less than building.
KnnGraph merge_knn_graphs(const Context& context, RowsView rows, const KnnGraph& left, const KnnGraph& right,
                          const KnnGraphChangeOptions& options = {});

// rows: those of the graph, then those that are new. A few thousand of these meet all rows, and an exact graph stays
// exact; of more the graph is built and merged.
KnnGraph add_to_knn_graph(const Context& context, RowsView rows, const KnnGraph& graph,
                          const KnnGraphChangeOptions& options = {});

// rows: all those of the graph; removed: different numbers of some of them. The others keep their order and are numbered
// from 0 again: a row's number falls by the number of removed ones below it. Rows that lost neighbours get others.
KnnGraph remove_from_knn_graph(const Context& context, RowsView rows, const KnnGraph& graph,
                               std::span<const Id> removed, const KnnGraphChangeOptions& options = {});

// The recall of neighbours found by whatever means, measured on `sample` rows drawn by the context's seed (0: all).
RecallEstimate measure_recall(const Context& context, RowsView rows, const Neighbors& neighbors,
                              Metric metric, std::size_t sample = 2000);

// In the container of docs/format.md (kind "graph"), atomically and durably; provenance: free text on where it came from.
// Refuses (invalid_argument) a graph that breaks its contract or has no rows.
void save(const KnnGraph& graph, const std::filesystem::path& path,
          const std::map<std::string, std::string>& provenance = {});
// Verifies every checksum and, independently of them, the contract; damage is Error(corrupt).
KnnGraph load_knn_graph(const std::filesystem::path& path);

}  // namespace nearwise
