// The operations a backend may implement, and their arguments: one struct per operation.
//
// Exact search combines several of them: vectors are prepared once (packed in the layout that the device
// scans), blocks of the base feed a collector, and finish_* evaluates exact distances of what the collector
// holds. knn_direct does all of it for few queries.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend/graph_search.h"
#include "backend/groups.h"
#include "backend/list_search.h"
#include "core/denied_ids.h"
#include "core/filter.h"
#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace nearwise {

class ProgressMeter;
class Stream;

enum class RowsRole : std::uint8_t { queries, base };

// Throws the error of a vector with NaN or infinity, worded the same for all backends.
[[noreturn]] void refuse_row(RowsRole role, std::size_t row);

// Vectors in the layout that a backend scans. Opaque; made by prepare_rows, used by the same backend.
class PreparedRows {
 public:
  virtual ~PreparedRows() = default;
};

// State of a search: for every query the best k so far, or all within a radius, and its candidates. Opaque.
class Collector {
 public:
  virtual ~Collector() = default;
};

struct PrepareArgs {
  RowsView rows;
  RowsRole role = RowsRole::base;
  // What the vectors, and those on the other side, are scanned as: their own type, or a narrower one that
  // holds the same values (narrowest_type).
  ElementType type = ElementType::f32;
  ElementType against = ElementType::f32;
  Metric metric = Metric::sqeuclidean;
  // Approximate mean of the base [dim], subtracted from queries and base; empty: none. Distances do not
  // change, and products of shorter vectors have smaller rounding errors. Euclidean metrics only.
  std::span<const float> centre;
  std::size_t first_row = 0;  // number of the first vector in messages
  // Whether scores may exclude few rows: for knn_block, which notices.
  bool coarse = false;
};

struct TopKArgs {
  const PreparedRows& queries;
  RowsView query_rows;
  std::size_t base_rows = 0;  // of all blocks together
  std::size_t k = 0;
  Metric metric = Metric::sqeuclidean;
  DeniedIds denied = {};  // of rows; only where KnnCosts::denies_ids
};

struct RangeArgs {
  const PreparedRows& queries;
  RowsView query_rows;
  float radius = 0;
  Metric metric = Metric::sqeuclidean;
  DeniedIds denied = {};  // as in TopKArgs
};

// Scans one block of the base for all queries. Blocks may come in any order, each vector once. The scan may
// still be running when the call returns: the block must live until the next call, until the collector is
// finished, or until the stream is destroyed.
struct KnnBlockArgs {
  const PreparedRows& queries;
  const PreparedRows& block;
  Collector& found;
  RowsView base;              // the whole base, at most 2^32 - 1 vectors, to evaluate candidates
  std::size_t first_row = 0;  // of the block in `base`
  std::size_t block_rows = 0;
  std::size_t next_rows = 0;          // size of the block prepared concurrently with this scan
  std::span<const float> centre;      // as in PrepareArgs
  RowBits allowed = {};               // rows of `base` that may be results; only where KnnCosts::masks_rows
  ProgressMeter* progress = nullptr;  // counts query-row pairs
};

// [queries, k] best first; ids are row numbers of the base plus id_offset; short rows are padded.
struct FinishTopKArgs {
  Collector& found;
  Id id_offset = 0;
  MatrixView<Id> ids;
  MatrixView<float> distances;
};

// Answers of one query, best first.
struct RangeRow {
  std::vector<Id> ids;
  std::vector<float> distances;
};

// Appends every query's answers to its row.
struct FinishRangeArgs {
  Collector& found;
  Id id_offset = 0;
  std::span<RangeRow> rows;
};

// Few queries against all rows of `base` on the calling thread: every distance is evaluated as it is
// reported.
struct KnnDirectArgs {
  RowsView queries;
  RowsView base;
  Metric metric = Metric::sqeuclidean;
  std::size_t k = 0;
  Id id_offset = 0;
  MatrixView<Id> ids;
  MatrixView<float> distances;
  std::optional<std::span<const std::uint32_t>> rows = {};  // of the base, ascending; none: all of them
  DeniedIds denied = {};                                    // of rows
  ProgressMeter* progress = nullptr;                        // counts pairs that are compared
};

// Memory of a search, for the planner. Bytes on the context's budget.
struct KnnCosts {
  std::uint64_t bytes_per_query = 0;         // prepared query and top-k state
  std::uint64_t bytes_per_base_row = 0;      // prepared vector
  std::uint64_t fixed_bytes = 0;             // per search, independent of sizes
  std::uint64_t useful_bytes = 0;            // additional memory that makes a search faster
  std::uint64_t direct_bytes_per_query = 0;  // of knn_direct
  std::size_t query_granule = 1;             // queries are prepared in multiples of this
  std::size_t base_granule = 1;
  std::size_t blocks_at_once = 1;   // 2: one is scanned while the next is prepared
  std::uintptr_t form = 0;          // identifies the layout: queries and base need equal ones
  bool masks_rows = false;          // a scan leaves out rows that KnnBlockArgs::allowed does not name
  bool denies_ids = false;          // and rows that one query must not return
  double pair_ns = 1;               // estimated time of one query and one row on one thread
  std::size_t min_coarse_rows = 0;  // with fewer base rows KnnCostsArgs::coarse = false is faster
  // One stream occupies the device: host threads do not split the base, and blocks are large even for few
  // queries.
  bool whole_device = false;
  std::uint64_t device_bytes = UINT64_MAX;  // free device memory; the budget may allow more
};

struct KnnCostsArgs {
  std::size_t dim = 0;
  std::size_t k = 0;
  Metric metric = Metric::sqeuclidean;
  ElementType query_type = ElementType::f32;  // as in PrepareArgs
  ElementType base_type = ElementType::f32;
  bool coarse = true;  // as in PrepareArgs; knn_costs only
};

// Memory of a self join.
struct SelfJoinCosts {
  bool offered = false;  // whether the backend supports it for this type and metric
  std::uint64_t bytes_per_row = 0;
  std::uint64_t fixed_bytes = 0;
  std::size_t row_granule = 1;
};

// The k nearest other vectors of every vector, each pair compared once.
struct SelfJoinArgs {
  RowsView rows;  // at most 2^32 - 1
  Metric metric = Metric::sqeuclidean;
  std::size_t k = 0;
  ElementType type = ElementType::f32;  // as in PrepareArgs
  std::span<const float> centre;        // as in PrepareArgs
  MatrixView<Id> ids;
  MatrixView<float> distances;
  ProgressMeter* progress = nullptr;  // counts pairs, each once
};

// The nearest vector of the base for every query, as knn with k = 1. The base is one block.
struct AssignArgs {
  const PreparedRows& queries;
  RowsView query_rows;
  const PreparedRows& block;
  RowsView base;  // at most 2^32 - 1 rows, at least one
  Metric metric = Metric::sqeuclidean;
  std::span<const float> centre;      // that the rows were prepared with
  std::span<std::uint32_t> nearest;   // [queries] out
  std::span<float> distances;         // [queries] out, as reported; empty: not evaluated
  ProgressMeter* progress = nullptr;  // counts query-row pairs
};

// Bytes on the context's budget.
struct AssignCosts {
  std::uint64_t bytes_per_query = 0;              // prepared form
  std::uint64_t bytes_per_base_row = 0;           // prepared form
  std::uint64_t distance_bytes_per_base_row = 0;  // with distances
  std::uint64_t fixed_bytes = 0;
  std::uint64_t useful_bytes = 0;  // additional memory that makes assign faster
  std::size_t query_granule = 1;
  std::size_t base_granule = 1;
  std::uint64_t device_bytes = UINT64_MAX;  // free device memory; the budget may allow more
};

// Means of the vectors assigned to each centroid, and sums of their squared distances to it. Vectors are
// added in ascending order in f64, in pieces that depend on the assignment alone: the same bytes on every
// device.
struct CentroidMeansArgs {
  RowsView rows;                           // at most 2^32 - 1
  std::span<const std::uint32_t> nearest;  // [rows] the centroid of each
  MatrixView<const float> centroids;       // [clusters, dim] that they were assigned to
  // sqeuclidean: means. inner_product: sums scaled to length 1. cosine: the same of rows scaled to length 1.
  Metric metric = Metric::sqeuclidean;
  // Out. A centroid without members, or whose sum is zero and cannot be normalised, does not change.
  MatrixView<float> means;           // [clusters, dim]
  MatrixView<double> sums = {};      // [clusters, dim] out: sums before division; may be empty
  std::span<std::uint32_t> members;  // [rows] row numbers by cluster, ascending in each
  std::span<std::uint64_t> ends;     // [clusters] end offset of each cluster's members
  std::span<double> errors;          // [clusters]
};

// The codewords of a product quantizer: a vector is split into parts, each with its own codebook.
struct Codebooks {
  std::size_t dim = 0;
  std::size_t parts = 1;             // 1 to dim
  unsigned bits = 8;                 // of a part's code: 4 or 8
  std::span<const float> codewords;  // part after part, each [2^bits, its elements]

  std::size_t count() const { return std::size_t{1} << bits; }  // codewords of a part
  // Offset of a part's first element. Lengths differ by at most one, longer parts come first.
  std::size_t begin(std::size_t part) const { return dim / parts * part + std::min(part, dim % parts); }
  std::size_t length(std::size_t part) const { return begin(part + 1) - begin(part); }
  std::span<const float> of(std::size_t part) const {
    return codewords.subspan(begin(part) * count(), length(part) * count());
  }
  // 8 bits: a byte per part. 4 bits: part 2i in the low half of byte i, part 2i + 1 in the high half.
  std::size_t code_bytes() const { return bits == 8 ? parts : (parts + 1) / 2; }
};

// The nearest codeword of every part of every vector, as knn with k = 1.
struct PartCodesArgs {
  RowsView rows;  // finite
  Codebooks codebooks;
  MatrixView<std::uint8_t> codes;     // [rows, code_bytes] out
  ProgressMeter* progress = nullptr;  // counts rows
};

// Distance tables: the reported distance (sqeuclidean or inner_product) of every part of every query to its
// codewords.
struct PartTablesArgs {
  RowsView queries;  // finite
  Codebooks codebooks;
  Metric metric = Metric::sqeuclidean;
  MatrixView<float> tables;           // [queries, parts * 2^bits] out
  ProgressMeter* progress = nullptr;  // counts queries
};

// Vectors times a matrix, plus an offset: sums in f64 over the elements in ascending order, rounded to f32
// once.
struct RotateArgs {
  RowsView rows;                      // finite
  MatrixView<const float> columns;    // [dim of the rows, dim of the results]
  std::span<const double> offset;     // [dim of the results] that sums begin with
  MatrixView<float> rotated;          // [rows, dim of the results] out
  ProgressMeter* progress = nullptr;  // counts rows
};

// sums(i, j) = sum over rows of left(row, i) * right(row, j), in f64, rows ascending.
struct CrossProductsArgs {
  MatrixView<const float> left;
  MatrixView<const float> right;  // as many rows
  MatrixView<double> sums;        // [columns of left, columns of right] out
};

// The codewords of an additive quantizer: a code decodes to the sum of one codeword of each codebook.
struct AdditiveCodebooks {
  static constexpr std::size_t codebook_size = 256;

  std::size_t dim = 0;
  std::size_t count = 1;             // of codebooks, 1 to 32
  std::span<const float> codewords;  // codebook after codebook, each [words_each, dim]

  std::span<const float> of(std::size_t book) const {
    return codewords.subspan(book * codebook_size * dim, codebook_size * dim);
  }
  std::span<const float> codeword(std::size_t book, std::size_t index) const {
    return codewords.subspan((book * codebook_size + index) * dim, dim);
  }
};

// Additive codes by stochastic local search. The code of a vector depends on its elements, the codebooks and
// the numbers here alone, not on its position (docs/algorithms/additive-quantization.md).
struct AdditiveCodesArgs {
  RowsView rows;  // finite
  AdditiveCodebooks codebooks;
  std::size_t iterations = 1;  // of perturbation and coordinate descent; the first has no perturbation
  std::size_t rounds = 1;      // of coordinate descent through all codes, at most
  std::size_t perturbed = 0;   // codes changed by a perturbation, at most the number of codebooks
  std::uint64_t seed = 0;
  MatrixView<std::uint8_t> codes;     // [rows, codebooks] out
  ProgressMeter* progress = nullptr;  // counts rows
};

struct AdditiveSearchShape {
  std::size_t rows = 0;
  std::size_t dim = 0;
  std::size_t element_bytes = sizeof(float);  // of the queries
  std::size_t code_bytes = 0;
  std::size_t k = 0;
};

// Exhaustive search in additive codes: for every query the k codes with the best scores, best first; equal
// scores by row. A score is the f32 sum, byte after byte, of the entries that the code selects in the query's
// tables: for every codebook the products with its columns, as rotate computes them, and norms for the last
// byte.
struct AdditiveSearchArgs {
  RowsView queries;                      // finite
  MatrixView<const float> columns;       // [dim, 256 (bytes of a code - 1)] codewords, scaled
  std::span<const double> squares;       // [queries] squared lengths; empty: scores without norms
  std::span<const float> norms;          // [256]
  MatrixView<const std::uint8_t> codes;  // [rows, bytes of a code]
  Order order = Order::smallest;
  std::size_t k = 0;  // 1 to the number of codes
  MatrixView<Id> ids;
  MatrixView<float> best;
  ProgressMeter* progress = nullptr;  // counts scores

  AdditiveSearchShape shape() const {
    return {codes.rows(), queries.dim(), element_size(queries.type()), codes.cols(), k};
  }
  // The last table of a query.
  float norm_entry(std::size_t query, std::size_t level) const {
    return squares.empty() ? 0.0F : static_cast<float>(squares[query] + static_cast<double>(norms[level]));
  }
};

// The ids of one row's columns: the caller's, 32 or 64 bits wide, or the column numbers.
struct RowIds {
  const std::uint32_t* narrow = nullptr;
  const Id* wide = nullptr;
  Id first = 0;  // of positions

  bool given() const { return narrow != nullptr || wide != nullptr; }
  Id at(std::size_t column) const {
    if (wide != nullptr) return wide[column];
    return narrow != nullptr ? Id{narrow[column]} : first + static_cast<Id>(column);
  }
  RowIds from(std::size_t column) const {
    return {narrow != nullptr ? narrow + column : nullptr, wide != nullptr ? wide + column : nullptr,
            first + static_cast<Id>(column)};
  }
};

// The same for all rows of a matrix; at most one of the two is not empty. A single row of ids applies to all
// rows.
struct ColumnIds {
  MatrixView<const std::uint32_t> narrow;
  MatrixView<const Id> wide;

  RowIds row(std::size_t index) const {
    const auto of = [&](const auto& ids) {
      return ids.data() == nullptr ? nullptr : ids.row(ids.rows() == 1 ? 0 : index).data();
    };
    return {of(narrow), of(wide), 0};
  }
};

struct SelectKShape {
  std::size_t rows = 0;
  std::size_t cols = 0;
  std::size_t k = 0;  // at most cols
};

// The k best values of every row, best first, and their ids: into columns 0 to k - 1.
struct SelectKArgs {
  MatrixView<const float> values;
  ColumnIds column_ids;
  Order order = Order::smallest;
  std::size_t k = 0;  // 1 to the number of columns
  MatrixView<Id> ids;
  MatrixView<float> best;
  ProgressMeter* progress = nullptr;  // counts values
};

// A backend's operations: null where it has none.
struct Ops {
// No parentheses may stand around a declared type or name. NOLINTNEXTLINE(bugprone-macro-parentheses)
#define OPERATION(result, name, parameters) result(*name) parameters = nullptr;
#include "backend/operations.def"
#undef OPERATION
};

}  // namespace nearwise
