// Approximate k-NN graphs with a measured recall.
//
// build_knn_graph compares rows within overlapping k-means partitions, then neighbours of neighbours
// (NN-Descent), until exact search on a sample shows the target recall. It falls back to exact search where
// that is faster or, for up to 2 million rows, where nothing else reaches the target; with more rows,
// GraphReport::reached is then false. docs/algorithms/knn-graph.md describes the algorithm.
//
// The same rows, options and seed give the same bytes at any number of threads and on every instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/export.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/recall_estimate.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

enum class GraphMethod : std::uint8_t {
  exact,       // all pairs
  nn_descent,  // overlapping partitions, then NN-Descent
};
std::string_view name(GraphMethod method);

// One step of a build: round 0 compares rows within partitions (or is the first step of a change); later
// rounds are NN-Descent iterations, comparisons within other partitions, or comparisons of few rows with all.
struct GraphRound {
  std::size_t round = 0;
  std::uint64_t updates = 0;  // list entries that this round added
  RecallEstimate recall;
};

struct GraphReport {
  GraphMethod method = GraphMethod::exact;
  RecallEstimate recall;
  bool reached = true;  // recall.low is at least the target
  std::vector<GraphRound> rounds;
};

// Row i of `neighbors` lists the neighbours of row i: `degree` distinct other rows, best first, ties by lower
// id. A list ends in no_id only if there are fewer than `degree` other rows. Distances are bit for bit those
// of exact search.
struct KnnGraph {
  Neighbors neighbors;  // [rows, degree]
  Metric metric = Metric::sqeuclidean;
  GraphReport report;

  std::size_t rows() const { return neighbors.ids.rows(); }
  std::size_t degree() const { return neighbors.ids.cols(); }
  // Throws Error(corrupt) naming the first row that violates the above.
  void validate() const;
};

struct KnnGraphOptions {
  std::size_t degree = 10;
  Metric metric = Metric::sqeuclidean;
  // Rounds continue until the lower end of the recall's confidence interval reaches it. 1: exact search.
  double target_recall = 0.95;
  // Called after every round, on the calling thread.
  std::function<void(const GraphRound&)> on_round = {};
};

// Rows are on the host, at most 2^31 - 1. Throws Error(invalid_argument) naming the first row with NaN or
// infinity.
KnnGraph build_knn_graph(const Context& context, RowsView rows, const KnnGraphOptions& options = {});

struct KnnGraphChangeOptions {
  // As in KnnGraphOptions. 1: exact search, unless the graph is exact and few rows are affected.
  double target_recall = 0.95;
  std::function<void(const GraphRound&)> on_round = {};
};

// The following return a new graph of the same degree and metric, which satisfies the contract of KnnGraph,
// and leave their input unchanged. A graph that violates the contract or was built from other vectors throws
// Error(invalid_argument): the distances of 688 sampled rows are recomputed, which detects 1 % wrong rows
// with probability 0.999.

// rows: the vectors of `left`, then of `right`, whose ids are offset by left.rows(). Only pairs across the
// two sides are compared, which costs less than a build.
KnnGraph merge_knn_graphs(const Context& context, RowsView rows, const KnnGraph& left, const KnnGraph& right,
                          const KnnGraphChangeOptions& options = {});

// rows: those of the graph, then the new ones. Up to a few thousand new rows are compared with all rows,
// which keeps an exact graph exact; for more, a graph of the new rows is built and merged.
KnnGraph add_to_knn_graph(const Context& context, RowsView rows, const KnnGraph& graph,
                          const KnnGraphChangeOptions& options = {});

// rows: all rows of the graph. removed: distinct row numbers. The remaining rows keep their order and are
// renumbered from 0. Rows that lose neighbours get new ones.
KnnGraph remove_from_knn_graph(const Context& context, RowsView rows, const KnnGraph& graph,
                               std::span<const Id> removed, const KnnGraphChangeOptions& options = {});

// The recall of any neighbour lists, measured on `sample` rows drawn with the context's seed; nullopt: on all
// rows. There must be at least 2 rows, on the host.
RecallEstimate measure_recall(const Context& context, RowsView rows, const Neighbors& neighbors,
                              Metric metric, std::optional<std::size_t> sample = 2000);

// Writes the container of docs/format.md (kind "graph") atomically and durably. provenance: free text. Throws
// Error(invalid_argument) for a graph without rows or one that violates its contract.
void save(const KnnGraph& graph, const std::filesystem::path& path,
          const std::map<std::string, std::string>& provenance = {});
// Verifies checksums and contract; throws Error(corrupt).
KnnGraph load_knn_graph(const std::filesystem::path& path);

}  // namespace nearwise
