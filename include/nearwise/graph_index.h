// Graph index: search in a graph whose edges were pruned from a k-NN graph, for single queries at low
// latency.
//
// A search follows edges towards the query and keeps a beam of the nearest vectors found so far; a wider beam
// finds more of the neighbours and takes longer. build() chooses the beam for a target recall, measured on a
// sample. docs/algorithms/graph-search.md describes the algorithm.
//
// Vectors are compared by 8-bit codes in integer arithmetic, and by additional 4-bit codes in large indexes;
// the best candidates are evaluated with the original vectors, which the index keeps in their element type.
// Results and file bytes are the same on every instruction set, on CUDA devices, and for any number of
// threads. Reported distances are those of exact search, ties by lower id. One exception: between add() and
// compact(), if several vectors tie for the k-th place, the one that was added first is returned.
//
// add(), update() and remove() change the graph instead of rebuilding it; docs/algorithms/graph-search.md
// says how, and when a call compacts or rebuilds the whole graph. Memory is charged to the context that the
// index was made with, including the codes and edges that the first search on a CUDA device copies there.
//
// Any thread may call any method at any time. A method that reads (every const one, such as search) sees the
// index as it was before or after each call that changes it, never a mixture. A change does most of its work
// while searches continue, then waits for running searches and applies its result; searches that start in the
// meantime wait. Changes and calibrate() run one at a time. A change that fails or is cancelled leaves the
// index unchanged. Two rules: do not move or destroy the index while it is in use; and in a progress callback
// of one of its methods, call no method other than size() and next_id(), which never wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/exact.h"
#include "nearwise/export.h"
#include "nearwise/filter.h"
#include "nearwise/graph/knn_graph.h"
#include "nearwise/ivf.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/recall_estimate.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

struct GraphIndexOptions {
  Metric metric = Metric::sqeuclidean;
  std::size_t degree = 48;  // edges per vector, at most: a multiple of 16 from 16 to 128
  // Recall of the k-NN graph of `degree` neighbours that edges are chosen from.
  double graph_recall = 0.95;
  // One id per vector, distinct and not negative; empty: row numbers.
  std::span<const Id> ids = {};
};

struct GraphCalibrationOptions {
  double target_recall = 0.95;  // of the 10 and of the 100 nearest neighbours
  // Vectors of the index used as queries, drawn with the context's seed; none counts as its own neighbour.
  std::size_t sample = 1000;
  // Queries to calibrate with instead. Needed if queries differ in kind from the vectors (questions and
  // passages, for example): vectors of the index would be too easy to find.
  RowsView queries = {};
};

// The recall of searches with the calibrated beam.
struct GraphCalibration {
  double target_recall = 0;
  std::size_t neighbors = 0;  // 10, or all other vectors if there are fewer
  std::size_t beam = 0;       // for up to `neighbors` results
  RecallEstimate recall = {};
  // For 100 results; interpolated between the two for fewer, in proportion to k for more.
  std::size_t beam_of_100 = 0;
  RecallEstimate recall_of_100 = {};
  // The whole beam is evaluated with the original vectors, not only the best by code, as codes are too
  // coarse.
  bool evaluates_beam = false;

  bool reached() const { return recall.value >= target_recall && recall_of_100.value >= target_recall; }
  friend bool operator==(const GraphCalibration&, const GraphCalibration&) = default;
};

struct GraphSearchOptions {
  // At least k; default: GraphIndex::beam(k). With a beam as wide as the number of vectors, the
  // search is exact.
  std::optional<std::size_t> beam = {};
  // Ids that may be returned. If few are allowed, they are compared exactly; otherwise the beam is widened,
  // and queries that find too few allowed vectors are answered by exact search among the allowed ones.
  // Results are padded if fewer than k are allowed.
  Filter filter = {};
};

class GraphIndex final {
 public:
  using SearchOptions = GraphSearchOptions;
  using RangeSearchOptions = GraphSearchOptions;

  // Copies the vectors, which must be on the host: at most 2^31 - 1, of up to 8191 dimensions. Throws
  // Error(invalid_argument) naming the first one with NaN or infinity. Without calibration, the default beam
  // is 64 for up to 10 results and 164 for 100.
  static GraphIndex build(
      const Context& context, RowsView rows, const GraphIndexOptions& options = {},
      const std::optional<GraphCalibrationOptions>& calibration = GraphCalibrationOptions());
  // From a k-NN graph of the same vectors and metric. options.ids must be ascending, graph_recall is unused.
  static GraphIndex from_knn_graph(
      const Context& context, const KnnGraph& graph, RowsView rows, const GraphIndexOptions& options = {},
      const std::optional<GraphCalibrationOptions>& calibration = GraphCalibrationOptions());

  GraphIndex(GraphIndex&&) noexcept;
  GraphIndex& operator=(GraphIndex&&) noexcept;
  ~GraphIndex();

  // The semantics of Ivf::add. `rows` must have the element type of the index. New vectors are encoded like
  // the existing ones: elements outside the range of those are clamped. Batches that are large for the index
  // are added in parts. The whole graph is rebuilt, from a k-NN graph of recall 0.95, if
  // - there are more new vectors than old ones;
  // - the index has fewer than 8,192 vectors, and their number passes a power of two;
  // - all elements so far were integers of one byte, and a new one is not; or
  // - for inner_product, a new vector is more than 5 % longer than all old ones.
  // A calibrated index is calibrated again, for the same target recall, on a sample of its vectors, whenever
  // their number passes a power of two; the beam never becomes narrower.
  std::size_t add(const Context& context, RowsView rows, std::span<const Id> ids = {},
                  OnDuplicate on_duplicate = OnDuplicate::refuse);
  // Replaces the vectors with these ids. The index must hold every one of them.
  void update(const Context& context, std::span<const Id> ids, RowsView rows);
  // Removes every vector with one of these ids. Returns how many were removed. Searches still pass through
  // removed vectors, without returning them. Once they are more than a quarter of all, they are taken out of
  // the graph: by this call if the memory limit allows, else by a later change.
  std::size_t remove(const Context& context, std::span<const Id> ids);
  // Takes removed vectors out of the graph and frees their space.
  void compact(const Context& context);

  // [queries, k]; padded with no_id if there are fewer than k vectors. `queries` must be on the host.
  Neighbors search(const Context& context, RowsView queries, std::size_t k,
                   const GraphSearchOptions& options = {}) const;
  // The vectors within the radius, as found by searches with growing k. A query with very many of them is
  // answered by exact search, which throws Error(unsupported) on a CUDA device.
  RangeNeighbors range_search(const Context& context, RowsView queries, float radius,
                              const GraphSearchOptions& options = {}) const;

  // Chooses the smallest beam (within 1/16) for which the lower end of the recall's 95 % interval reaches the
  // target; if none does, the widest beam tried, and reached() tells whether its estimate reaches the target.
  GraphCalibration calibrate(const Context& context, const GraphCalibrationOptions& options = {});
  std::optional<GraphCalibration> calibration() const;
  std::size_t beam(std::size_t k = 10) const;  // default of a search
  void set_beam(std::size_t beam);             // forgets the calibration

  bool contains(Id id) const;
  std::vector<Id> ids() const;  // of all vectors, ascending
  // The vectors with these ids [ids, dim]. Throws Error(invalid_argument) for an id that the index does not
  // hold.
  void get(std::span<const Id> ids, MatrixView<float> out) const;

  std::size_t size() const;  // vectors
  Id next_id() const;        // one above the largest id ever added
  bool is_changing() const;  // a change is running; another one would wait for it
  std::size_t dim() const;
  Metric metric() const;
  ElementType element_type() const;  // of the vectors
  std::size_t degree() const;
  std::size_t entries() const;           // vectors that searches may begin with
  std::size_t bytes_per_vector() const;  // in addition to the vector itself and its id
  // [rows, degree]; -1 ends a list. After build() and compact(), rows are positions in ids(); otherwise they
  // are in the order of addition and include removed vectors. Valid until the next change.
  MatrixView<const std::int32_t> edges() const;

  // Free text saved with the index. Building sets "version" and "seed".
  std::map<std::string, std::string> provenance() const;
  void set_provenance(std::map<std::string, std::string> provenance);

 private:
  struct State;
  explicit GraphIndex(std::unique_ptr<State> state);
  std::size_t add_all(const char* operation, const Context& context, const RowsView& rows,
                      std::span<const Id> ids, OnDuplicate on_duplicate, bool must_exist);
  friend struct GraphIndexInternals;  // src/graph_index/graph_index_state.h

  std::unique_ptr<State> state_;
};

// Writes a container of docs/format.md (kind "graph_index"), atomically; equal indexes give equal bytes.
// Removed vectors are written too: call compact() first for a smaller file.
void save(const GraphIndex& index, const std::filesystem::path& path);
// Maps the file after verifying its checksums and structure. The file must not change while the index exists;
// if it is truncated, operations throw Error(corrupt). Throws Error(corrupt) for a damaged file.
GraphIndex load_graph_index(const Context& context, const std::filesystem::path& path);

}  // namespace nearwise
