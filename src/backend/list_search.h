// Arguments and memory of a search in inverted lists.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
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
// consecutively, list 0 first. A hash table with linear probing for each query, and bits that tell most other
// entries without it: thousands of candidates of a query are looked up.
struct DeniedEntries {
  static constexpr std::uint32_t empty = UINT32_MAX;
  static constexpr std::size_t bits_per_slot = 8;
  static constexpr unsigned stretch_shift = 8;  // a stretch is 256 consecutive numbers
  static constexpr std::size_t stretch_words = 8;

  std::span<const std::size_t> offsets = {};  // [queries + 1] into `slots`
  std::span<const std::uint32_t> slots = {};  // of each query: a power of two, at least half of them empty
  std::span<const std::uint64_t> bits = {};   // bits_per_slot for each slot
  std::span<const std::uint64_t> stretches = {};  // [queries, stretch_words] bits of stretches with entries
  std::span<const std::uint32_t> counts = {};     // [queries] entries; empty: nothing is denied

  static std::size_t slots_for(std::size_t entries) {
    return entries == 0 ? 0 : std::bit_ceil(std::max<std::size_t>(2 * entries, 64 / bits_per_slot));
  }
  static std::size_t hash(std::uint32_t number) {
    return static_cast<std::size_t>(number * std::uint64_t{0x9E3779B97F4A7C15} >> 32U);
  }

  std::size_t count(std::size_t query) const { return counts.empty() ? 0 : counts[query]; }

  // Of one query that has any.
  class Table {
   public:
    Table(const DeniedEntries& all, std::size_t query)
        : slots_(all.slots.data() + all.offsets[query]),
          bits_(all.bits.data() + all.offsets[query] * bits_per_slot / 64),
          mask_(all.offsets[query + 1] - all.offsets[query] - 1) {}
    // False: it is not denied.
    bool may_contain(std::uint32_t number) const {
      const std::size_t bit = hash(number) & (mask_ * bits_per_slot + bits_per_slot - 1);
      return (bits_[bit / 64] >> (bit % 64) & 1U) != 0;
    }
    bool contains(std::uint32_t number) const {
      std::size_t slot = hash(number) & mask_;
      while (slots_[slot] != number && slots_[slot] != empty) slot = (slot + 1) & mask_;
      return slots_[slot] == number;
    }

   private:
    const std::uint32_t* slots_;
    const std::uint64_t* bits_;
    std::size_t mask_;
  };

  bool contains(std::size_t query, std::uint32_t number) const {
    return count(query) != 0 && Table(*this, query).contains(number);
  }
  // False: none of the entries [first, last] is denied.
  bool may_contain(std::size_t query, std::uint32_t first, std::uint32_t last) const {
    if (count(query) == 0) return false;
    for (std::uint32_t stretch = first >> stretch_shift; stretch <= last >> stretch_shift; ++stretch) {
      const std::size_t bit = hash(stretch) % (64 * stretch_words);
      if ((stretches[query * stretch_words + bit / 64] >> (bit % 64) & 1U) != 0) return true;
    }
    return false;
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

// The lists of an index as a device keeps them between searches. Opaque; any number of threads may search, on
// the device that they were prepared for.
class PreparedLists {
 public:
  virtual ~PreparedLists() = default;

  virtual bool has_vectors() const = 0;  // for re-ranking
  virtual std::uint64_t bytes() const = 0;
};

// Nothing of it is read after the call. What is kept is on the budget of the stream's context.
struct PrepareListsArgs {
  std::span<const ListView> lists;
  const ListCodec& codec;
  Metric metric = Metric::sqeuclidean;
  std::span<const float> centre;  // as in ListSearchArgs
  KeptVectors kept = {};          // to re-rank by; none: without them
};

// As list_search, of the lists whose centroids are nearest to each query, as knn finds them.
struct PreparedListSearchArgs {
  const PreparedLists& lists;  // for this device
  RowsView queries;            // on the host
  std::size_t probes = 0;      // 1 to the number of lists
  std::size_t k = 0;
  std::size_t candidates = 0;  // at least k, or all vectors; k without re-ranking
  bool rerank = false;         // by the vectors that were prepared
  MatrixView<Id> ids;          // [queries, k] out, short rows padded
  MatrixView<float> distances;
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
