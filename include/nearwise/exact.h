// Exact search: k nearest neighbours, range search, and exact k-NN graphs.
//
// Results are sorted best first, ties by lower id. The reported distance is an f64 sum in a fixed order (8
// lanes, fixed tree, no FMA), rounded once to f32: the same bits on every instruction set, device and number
// of threads. Faster low-precision products only screen candidates, under a proven error bound: no true
// neighbour is lost.
//
// Queries and base may have different element types. A vector with NaN or infinity throws
// Error(invalid_argument) naming its row. Work is tiled to fit the context's memory limit; the base may be a
// mapped file larger than memory. Rows may be on the host or on the context's device, where they must be
// complete before the call (device_memory.h).
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/export.h"
#include "nearwise/filter.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

struct KnnOptions {
  Metric metric = Metric::sqeuclidean;
  ShortRows short_rows = ShortRows::refuse;  // if k exceeds the rows of the base (less 1 with exclude_self)
  // Queries and base are the same vectors: query i does not return row i, but may return its duplicates.
  bool exclude_self = false;
  // Rows of the base that may be returned. If fewer than k are allowed, results are padded, whatever
  // short_rows is.
  Filter filter = {};
};

// The k nearest rows of the base for every query; k must be at least 1.
Neighbors knn(const Context& context, RowsView queries, RowsView base, std::size_t k,
              const KnnOptions& options = {});

// As knn of the base with itself and exclude_self, but computes each pair only once if matrix units and the
// memory limit allow.
Neighbors exact_knn_graph(const Context& context, RowsView base, std::size_t k,
                          const KnnOptions& options = {});

struct RangeOptions {
  Metric metric = Metric::sqeuclidean;
  Filter filter = {};
};

// The results of query q are the elements [offsets[q], offsets[q + 1]): best first, except that
// threshold_join returns them by ascending id.
struct RangeNeighbors {
  std::vector<std::size_t> offsets;  // [queries + 1]
  std::vector<Id> ids;
  std::vector<float> distances;
};

// All rows whose reported distance is at most `radius` (inner_product: at least). Error(unsupported) on a
// CUDA device.
RangeNeighbors range_search(const Context& context, RowsView queries, RowsView base, float radius,
                            const RangeOptions& options = {});

struct ExactOptions {
  Metric metric = Metric::sqeuclidean;
};

struct ExactSearchOptions {
  ShortRows short_rows = ShortRows::refuse;
  Filter filter = {};  // as in KnnOptions
};

struct ExactRangeOptions {
  Filter filter = {};
};

// A base packed once for many searches, with the same results as the functions above. The packed copy (about
// 1 to 4 bytes per element, depending on types, dimension, instruction set and device) is charged to the
// context's budget. The original vectors are read by searches too and must outlive this object. Searches may
// run concurrently.
//
// The packed copy serves queries of the base's element type, and any mix of f32, f16 and bf16; for other
// types the base is packed again per search, as in knn.
class Exact {
 public:
  using SearchOptions = ExactSearchOptions;
  using RangeSearchOptions = ExactRangeOptions;

  // first_row: offset of row numbers in error messages, if the base is part of a larger one. Result ids start
  // at 0.
  static Exact prepare(const Context& context, RowsView base, const ExactOptions& options = {},
                       std::size_t first_row = 0);
  Exact(Exact&&) noexcept;
  Exact& operator=(Exact&&) noexcept;
  ~Exact();

  Neighbors search(const Context& context, RowsView queries, std::size_t k,
                   const ExactSearchOptions& options = {}) const;
  RangeNeighbors range_search(const Context& context, RowsView queries, float radius,
                              const ExactRangeOptions& options = {}) const;

  // The same base prepared for another context, possibly on another device. Rows on the host serve every
  // device; rows on a device only that one: Error(invalid_argument) for others.
  Exact to(const Context& context) const;

  RowsView base() const;
  std::size_t size() const;  // rows of the base
  Metric metric() const;
  Place place() const;  // where it was prepared

 private:
  struct State;
  explicit Exact(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace nearwise
