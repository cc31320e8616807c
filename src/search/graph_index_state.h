// The members of a graph index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "backend/graph_search.h"
#include "codes/scalar_codec.h"
#include "core/memory.h"
#include "index/storage/index_lock.h"
#include "io/container/container_reader.h"
#include "nearwise/graph_index.h"
#include "search/entry_tree.h"

namespace nearwise {

namespace search {

inline constexpr std::size_t default_beam = 64;
// Calibration measures the recall of this many neighbours, and of many.
inline constexpr std::size_t calibration_neighbors = 10;
inline constexpr std::size_t many_neighbors = 100;
// Indexes of at least this many vectors are traversed by 4-bit codes.
inline constexpr std::size_t min_nibble_rows = 500'000;
inline constexpr std::string_view container_kind = "graph_index";

// How a search runs.
struct GraphBeam {
  std::size_t width = 1;
  bool is_evaluated = false;  // GraphCalibration::evaluates_beam
};

// What searches take where nothing is given.
struct GraphDefaults {
  std::size_t beam = default_beam;
  std::size_t beam_of_100 = many_neighbors + default_beam;
  bool evaluates_beam = false;

  // For k results of an index of this many rows.
  std::size_t beam_for(std::size_t k, std::size_t rows) const;
};

}  // namespace search

// Rows are in ascending order of their ids. Calls that read the members below `lock` hold it; those above
// never change.
struct GraphIndex::State {
  ScalarCodec codec;
  std::shared_ptr<MemoryBudget> budget;
  std::shared_ptr<const ContainerReader> file = {};  // mapped file that views refer to

  // What the views below refer to, unless it is the file.
  Buffer<std::uint8_t> own_codes = {};
  Buffer<std::uint8_t> own_nibbles = {};
  Buffer<std::int32_t> own_edges = {};
  Buffer<std::byte> own_vectors = {};
  Buffer<Id> own_ids = {};

  MatrixView<const std::uint8_t> codes = {};
  MatrixView<const std::uint8_t> nibbles = {};
  MatrixView<const std::int32_t> edges = {};
  RowsView vectors = {};         // the codes themselves, if vectors are u8 and Euclidean
  std::span<const Id> ids = {};  // empty: row numbers
  search::EntryTree entries = {};

  std::uint64_t filter_key = 0;  // of what is derived from filters for this index
  std::unique_ptr<PreparedGraph> prepared = {};

  mutable index::IndexLock lock = {};
  search::GraphDefaults defaults = {};
  std::optional<GraphCalibration> calibration = {};
  std::map<std::string, std::string> provenance = {};

  search::GraphDefaults current_defaults() const {
    const index::IndexLock::Reading reading(lock);
    return defaults;
  }

  std::size_t rows() const { return codes.rows(); }
  bool keeps_vectors_as_codes() const {
    return reinterpret_cast<const std::byte*>(codes.data()) == vectors.data();
  }
  Id id_of(std::size_t row) const { return ids.empty() ? static_cast<Id>(row) : ids[row]; }
  // The row of an id, if there is one.
  std::optional<std::size_t> find(Id id) const;
  SearchGraphView view() const { return {&codec, codes, nibbles, edges, entries.view(), vectors}; }
  // After all views are set.
  void prepare(const Context& context);
};

struct GraphIndexInternals {
  using State = GraphIndex::State;
  static const State& state_of(const GraphIndex& index) { return *index.state_; }
  static GraphIndex make(std::unique_ptr<State> state) { return GraphIndex(std::move(state)); }
};

}  // namespace nearwise
