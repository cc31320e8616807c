// Exact search: the k nearest rows, all rows within a radius, and the graph of all rows' neighbours.
//
// The contract of every answer: best first, the lower id wins a tie; the reported distance is a sum in f64 in a
// fixed order (8 lanes, fixed tree, no FMA) rounded once to f32, the same bits on every instruction set, device
// and number of threads; no true neighbour is lost to the rounding of a faster product.
//
// Queries and base may have different element types. A row with NaN or infinity is refused by its number. Work is done
// in tiles within the context's memory limit; the base may be a mapped file larger than memory. Rows may be on the host or
// on the context's device; there they must be complete before the call (device_memory.h).
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/types.h"

namespace nearwise {

struct KnnOptions {
  Metric metric = Metric::sqeuclidean;
  ShortRows short_rows = ShortRows::refuse;
  // The queries are the base, row by row: no row is its own neighbour (another with the same elements is).
  bool exclude_self = false;
};

Neighbors knn(const Context& context, RowsView queries, RowsView base, std::size_t k,
              const KnnOptions& options = {});

// The k nearest other rows of every row: knn with exclude_self, but every pair of rows is multiplied only once where the
// machine's matrix units and the memory limit allow it.
Neighbors exact_knn_graph(const Context& context, RowsView base, std::size_t k,
                          const KnnOptions& options = {});

struct RangeOptions {
  Metric metric = Metric::sqeuclidean;
};

// Answers of different lengths: those of query q are [offsets[q], offsets[q + 1]), best first.
struct RangeNeighbors {
  std::vector<std::size_t> offsets;  // [queries + 1]
  std::vector<Id> ids;
  std::vector<float> distances;
};

// All rows whose reported distance is at most `radius` (inner_product: at least).
RangeNeighbors range_search(const Context& context, RowsView queries, RowsView base, float radius,
                            const RangeOptions& options = {});

struct ExactOptions {
  Metric metric = Metric::sqeuclidean;
};

// A base prepared once for many searches. Answers are those of the functions above. Keeps the packed rows (about the size
// of the rows themselves for u8 and i8, half of it for f32) on the budget of the context it was made with, and looks at
// the rows again in every search: they must outlive it. Searches may run at once.
//
// Queries of the base's own element type use the packed rows, and so do f32, f16 and bf16 among each other; for other
// queries the base is packed again, as knn does it.
class Exact {
 public:
  // first_row: what messages call the first row, where the base is part of a larger one. Answers count from 0.
  static Exact prepare(const Context& context, RowsView base, const ExactOptions& options = {},
                       std::size_t first_row = 0);
  Exact(Exact&&) noexcept;
  Exact& operator=(Exact&&) noexcept;
  ~Exact();

  Neighbors search(const Context& context, RowsView queries, std::size_t k,
                   ShortRows short_rows = ShortRows::refuse) const;
  RangeNeighbors range_search(const Context& context, RowsView queries, float radius) const;

  // The same base prepared for another context, on whichever device that is; this one stays as it is. Rows on the host
  // serve every device; those on a device only that one, for others it throws Error(invalid_argument).
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
