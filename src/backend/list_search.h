// Arguments and memory of a search in inverted lists.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "codes/kept_vectors.h"
#include "codes/list_codec.h"
#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace nearwise {

// The vectors that candidates are re-ranked by: those in the lists, or given rows.
struct RerankVectors {
  KeptVectors kept = {};  // ListView::vectors
  RowsView rows = {};     // by id; used instead of `kept` if there are any

  bool any() const { return rows.rows() != 0 || kept.any(); }
  bool by_id() const { return rows.rows() != 0; }
  ElementType type() const { return by_id() ? rows.type() : kept.type; }
  // Of the entry `row` of a list, on the host: in place, or decoded to `scratch`.
  const std::byte* read(const ListView& list, std::size_t row, std::byte* scratch) const {
    return by_id() ? rows.row(static_cast<std::size_t>(list.ids[row]))
                   : kept.read(list.vectors + list.vector_row(row) * kept.bytes, scratch);
  }
};

// Entries that single queries must not return, by their numbers: entries of all lists are numbered
// consecutively, list 0 first.
struct DeniedEntries {
  std::span<const std::size_t> offsets = {};    // [queries + 1] into `numbers`; empty: nothing is denied
  std::span<const std::uint32_t> numbers = {};  // ascending for each query

  bool any() const { return !offsets.empty(); }
  std::span<const std::uint32_t> of(std::size_t query) const {
    return any() ? numbers.subspan(offsets[query], offsets[query + 1] - offsets[query])
                 : std::span<const std::uint32_t>();
  }
};

// The best k entries of the lists that each query probes, by reported distance to the decoded vector, then by
// id. With vectors to re-rank by, the best `candidates` of them by the distance to those.
struct ListSearchArgs {
  RowsView queries;
  std::span<const Id> probes;  // [queries, probe count] lists; no_id: none
  std::span<const ListView> lists;
  const ListCodec& codec;
  Metric metric = Metric::sqeuclidean;
  std::span<const float> centre;  // as in PrepareArgs
  // [lists] pointers to the CodeNorms of all entries of a list followed by their minimum; null where a list
  // has none cached. Empty: no list has.
  std::span<const std::atomic<const float*>> norms = {};
  std::size_t k = 0;
  std::size_t candidates = 0;  // at least k
  RerankVectors rerank = {};   // none: no re-ranking
  DeniedEntries denied = {};   // only where ListSearchCosts::denies_ids
  MatrixView<Id> ids;          // [queries, k] out, short rows padded
  MatrixView<float> distances;

  std::size_t probe_count() const { return queries.rows() == 0 ? 0 : probes.size() / queries.rows(); }
};

// Bytes on the context's budget.
struct ListSearchCosts {
  std::uint64_t bytes_per_query = 0;
  std::uint64_t fixed_bytes = 0;
  bool denies_ids = false;  // ListSearchArgs::denied
};

struct ListSearchShape {
  std::size_t dim = 0;
  Metric metric = Metric::sqeuclidean;
  ElementType query_type = ElementType::f32;
  ElementType row_type = ElementType::f32;
  std::size_t candidates = 0;
  std::size_t probes = 0;
  std::size_t lists = 0;
  std::size_t rows = 0;       // in all lists
  std::size_t codebooks = 0;  // of additive codes
};

}  // namespace nearwise
