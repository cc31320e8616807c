// A search of inverted lists, in tiles of queries that fit in memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <span>

#include "backend/list_search.h"
#include "index/ivf_state.h"
#include "nearwise/context.h"
#include "nearwise/ivf.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"

namespace nearwise::index {

inline constexpr const char* search_name = "Ivf.search";

class ListSearch {
 public:
  // The options are checked.
  ListSearch(const Context& context, const Ivf& index, const RowsView& queries, std::size_t k,
             const IvfSearchOptions& options);

  // What a tile of queries scans.
  struct Tile {
    Matrix<Id> probes;                // [queries, lists each], no_id: none
    std::span<const ListView> lists;  // all of the index; those that are not probed may be empty
    std::span<const std::atomic<const float*>> norms = {};
  };
  // Of queries [first, first + queries.rows()).
  using Probe = std::function<Tile(const Context& quiet, const RowsView& queries, std::size_t first)>;

  // probes: lists of a query, at most. Results are padded.
  Neighbors run(std::size_t probes, const Probe& probe) const;

  // Computes missing norms of these lists; empty if the index caches none.
  std::span<const std::atomic<const float*>> norms_of(std::span<const Id> lists) const;

  const IvfInternals::State& state() const { return state_; }
  const RerankVectors& vectors() const { return vectors_; }
  std::size_t candidates() const { return candidates_; }

 private:
  Neighbors search(std::size_t k, std::size_t candidates, std::size_t probes, const Probe& probe,
                   const DeniedIds& denied) const;

  const Context& context_;
  const Ivf& index_;
  const IvfInternals::State& state_;
  const RowsView queries_;
  const std::size_t k_;
  const RerankVectors vectors_;   // to re-rank by
  const std::size_t candidates_;  // at least k
  const DeniedIds denied_;        // ids of single queries
  bool caches_norms_ = false;
};

// Searches whole lists, those nearest to each query. Of a filter, only ids that single queries deny count.
// The options are checked.
Neighbors search_nearest_lists(const Context& context, const Ivf& index, const RowsView& queries,
                               std::size_t k, const IvfSearchOptions& options);

}  // namespace nearwise::index
