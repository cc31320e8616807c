// The operations a backend may implement, and their arguments. One struct per operation.
//
// Exact search is made of five of them: rows are prepared once (packed as the device scans them), blocks of base
// rows feed a running top-k, which at the end is finished with exact distances. Few queries skip all that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace nearwise {

class ProgressMeter;
class Stream;

enum class RowsRole : std::uint8_t { queries, base };

// Rows in the form a backend scans. Opaque; made by prepare_rows, used by the backend that made it.
class PreparedRows {
 public:
  virtual ~PreparedRows() = default;
};

// The best k of every query so far, and the candidates that may still be among them. Opaque.
class TopK {
 public:
  virtual ~TopK() = default;
};

struct PrepareArgs {
  RowsView rows;
  RowsRole role = RowsRole::base;
  ElementType against = ElementType::f32;  // type of the rows they will be compared with
  Metric metric = Metric::sqeuclidean;
  // A point near the middle of the base [dim], subtracted from queries and base alike; empty: none. Differences do
  // not change, but their products lose less to rounding. Euclidean metrics only.
  std::span<const float> centre;
  std::size_t first_row = 0;  // the number of rows' first row, for messages
};

struct TopKArgs {
  const PreparedRows& queries;
  RowsView query_rows;
  std::size_t k = 0;
  Metric metric = Metric::sqeuclidean;
};

// Scans one block of the base for all queries. Blocks may come in any order, each row once.
struct KnnBlockArgs {
  const PreparedRows& queries;
  const PreparedRows& block;
  TopK& best;
  RowsView base;              // the whole base (at most 2^32 - 1 rows): candidates are looked at again
  std::size_t first_row = 0;  // of the block in `base`
  std::size_t block_rows = 0;
  ProgressMeter* progress = nullptr;  // counts query-row pairs
};

// [queries, k] best first; ids are row numbers of the base plus id_offset; short rows are padded.
struct FinishTopKArgs {
  TopK& best;
  Id id_offset = 0;
  MatrixView<Id> ids;
  MatrixView<float> distances;
};

// Few queries against all rows of `base` on the calling thread: every distance is evaluated as it is reported.
struct KnnDirectArgs {
  RowsView queries;
  RowsView base;
  Metric metric = Metric::sqeuclidean;
  std::size_t k = 0;
  Id id_offset = 0;
  MatrixView<Id> ids;
  MatrixView<float> distances;
  ProgressMeter* progress = nullptr;
};

// Memory of a search, for the planner. Bytes on the context's budget.
struct KnnCosts {
  std::uint64_t bytes_per_query = 0;         // prepared form and top-k state
  std::uint64_t bytes_per_base_row = 0;      // prepared form
  std::uint64_t fixed_bytes = 0;             // per search, whatever the sizes
  std::uint64_t direct_bytes_per_query = 0;  // of knn_direct
  std::size_t query_granule = 1;             // queries are prepared in multiples of this
  std::size_t base_granule = 1;
};

struct KnnCostsArgs {
  std::size_t dim = 0;
  std::size_t k = 0;
  Metric metric = Metric::sqeuclidean;
  ElementType query_type = ElementType::f32;
  ElementType base_type = ElementType::f32;
};

struct Ops {
  KnnCosts (*knn_costs)(const Stream&, const KnnCostsArgs&) = nullptr;
  std::unique_ptr<PreparedRows> (*prepare_rows)(Stream&, const PrepareArgs&) = nullptr;
  std::unique_ptr<TopK> (*start_top_k)(Stream&, const TopKArgs&) = nullptr;
  void (*knn_block)(Stream&, const KnnBlockArgs&) = nullptr;
  void (*finish_top_k)(Stream&, const FinishTopKArgs&) = nullptr;
  void (*knn_direct)(Stream&, const KnnDirectArgs&) = nullptr;
};

}  // namespace nearwise
