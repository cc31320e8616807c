// Search graphs: what building and searching them needs of a backend.
//
// Every row has a list of edges to other rows. A search keeps a beam of the nearest rows found so far and
// expands them, nearest first, until all rows of the beam are expanded. Rows are compared by integer
// distances of their codes (codes/scalar_codec.h): edges and traversal are the same on every device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "codes/scalar_codec.h"
#include "core/filter.h"
#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace nearwise {

class MemoryBudget;
class ProgressMeter;

// Ends a list of edges.
inline constexpr std::int32_t no_edge = -1;
// Lists have a multiple of this many entries.
inline constexpr std::size_t degree_granule = 16;

// Keeps at most `degree` candidates of every row by robust pruning (Vamana): nearest first, a candidate is
// left out if a kept one is nearer to it than the row is, by a factor alpha. Rounds with alpha 1, 1.1 and 1.2
// fill the list with what the stricter one left out.
//
// `lists`, `offsets` and `edges` have a row for each of `rows`, or for every row of the codes.
struct PruneEdgesArgs {
  MatrixView<const std::uint8_t> codes;                     // [rows, row_bytes] of 8-bit codes
  std::optional<std::span<const std::uint32_t>> rows = {};  // to prune; none: all of them
  MatrixView<const std::int32_t> lists;                     // [rows, any] candidates; no_edge ends a list
  std::span<const std::uint64_t> offsets = {};              // [rows + 1] of further candidates; empty: none
  std::span<const std::uint32_t> others = {};               // those of row i: [offsets[i], offsets[i + 1])
  // Rows with at most `degree` candidates keep all of them.
  bool keep_short_lists = false;
  MatrixView<std::int32_t> edges;     // [rows, degree] out, by distance, then row; may be `lists`
  ProgressMeter* progress = nullptr;  // counts rows
};

// Where searches begin: rows near the leaves of a two-level k-means tree.
struct EntryTreeView {
  MatrixView<const std::uint8_t> top_codes;   // [tops, row_bytes]
  std::span<const std::uint32_t> ends;        // [tops] end of each one's leaves
  MatrixView<const std::uint8_t> leaf_codes;  // [leaves, row_bytes]
  std::span<const std::uint32_t> rows;        // [leaves]
};

struct SearchGraphView {
  const ScalarCodec* codec = nullptr;
  MatrixView<const std::uint8_t> codes;    // [rows, row_bytes]
  MatrixView<const std::uint8_t> nibbles;  // [rows, nibble_row_bytes]; may be empty
  MatrixView<const std::int32_t> edges;    // [rows, degree]
  EntryTreeView entries;
  RowsView vectors;  // for reported distances
};

// A graph as a device searches it, with memory for searches. Opaque; any number of threads may search, on the
// device that it was prepared for. What it copies of the graph, it copies when it is first searched: a change
// prepares a graph before it puts its edges in place.
class PreparedGraph {
 public:
  virtual ~PreparedGraph() = default;
};

// Searches that a thread of the CPU runs in turns, if it has several queries. Each has memory of its own.
inline constexpr std::size_t graph_searches_per_thread = 4;

struct PrepareGraphArgs {
  SearchGraphView graph;                 // outlives the prepared graph
  std::shared_ptr<MemoryBudget> budget;  // of the memory that is kept between searches
};

struct SearchGraphArgs {
  const PreparedGraph& graph;  // for this device
  RowsView queries;            // finite
  std::size_t k = 0;
  std::size_t beam = 0;  // at least k
  // The best of the beam by codes are evaluated by vectors; at least k.
  std::size_t evaluated = 0;
  RowBits allowed = {};  // rows that may be results
  // A row for each query that the search does as if it were not there; empty: none.
  std::span<const std::uint32_t> absent = {};
  MatrixView<Id> ids;           // [queries, k] out: row numbers, best first, padded
  MatrixView<float> distances;  // [queries, k] out, as reported
  // [queries] out: whether fewer than k rows of the final beam were allowed, so that the search did not end
  // around the nearest allowed ones; may be empty.
  std::span<std::uint8_t> is_starved = {};
  ProgressMeter* progress = nullptr;  // counts queries
};

}  // namespace nearwise
