// A search of inverted lists, in tiles of queries that fit in memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend/list_search.h"
#include "core/progress.h"
#include "ivf/ivf_state.h"
#include "nearwise/context.h"
#include "nearwise/ivf.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"

namespace nearwise::ivf {

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
  // reach: the results are among as many nearest vectors, k or more.
  using Probe = std::function<Tile(const Context& quiet, const RowsView& queries, std::size_t reach)>;
  // Lists of a query, at most.
  using ProbeCount = std::function<std::size_t(std::size_t reach)>;

  // Results are padded. If a query must not return vectors in the lists that it probes, k neighbours lie
  // further away: it is searched for with as many more probes and candidates as that many neighbours take.
  Neighbors run(const ProbeCount& probes, const Probe& probe) const;

  // Computes missing norms of these lists; empty if the index caches none.
  std::span<const std::atomic<const float*>> norms_of(std::span<const Id> lists) const;

  // For lists that the device of the context keeps, where it does.
  void use_resident_lists();

  const IvfInternals::State& state() const { return state_; }
  const RerankVectors& vectors() const { return vectors_; }

 private:
  // A search of some of the queries.
  struct Pass {
    RowsView queries;
    std::size_t k;  // results
    std::size_t reach;
    DeniedIds denied = {};
    bool resident = false;  // may use resident lists
  };
  struct FarQuery {
    std::size_t reach;
    std::size_t query;
    auto operator<=>(const FarQuery&) const = default;
  };

  std::size_t candidates(const Pass& pass) const;
  // far: queries that must reach further, whose results are not written; null: there are none.
  Neighbors search(const Pass& pass, const ProbeCount& probes, const Probe& probe, ProgressMeter& progress,
                   std::vector<FarQuery>* far) const;
  struct Sizes {
    std::size_t probes;
    std::size_t candidates;
  };
  // Of a tile. Returns the queries without answers.
  std::vector<std::uint32_t> search_resident(const Context& quiet, Stream& stream, const RowsView& queries,
                                             const Sizes& sizes, MatrixView<Id> ids,
                                             MatrixView<float> distances) const;
  // Writes the answers of these queries of a tile that begins at first_query, by the lists on the host.
  void search_left(std::span<const std::uint32_t> left, std::size_t first_query, std::size_t tile_queries,
                   const Pass& pass, const ProbeCount& probes, const Probe& probe, ProgressMeter& progress,
                   Neighbors& result) const;
  void search_far(std::span<const FarQuery> some, const ProbeCount& probes, const Probe& probe,
                  ProgressMeter& progress, Neighbors& result) const;

  const Context& context_;
  const Ivf& index_;
  const IvfInternals::State& state_;
  const RowsView queries_;
  const std::size_t k_;
  const RerankVectors vectors_;                  // to re-rank by
  const std::optional<std::size_t> candidates_;  // the caller's
  const bool has_given_probes_;
  const DeniedIds denied_;  // ids of single queries
  bool caches_norms_ = false;
  std::shared_ptr<const PreparedLists> resident_ = {};
};

struct SearchShape {
  ElementType query_type = ElementType::f32;
  std::size_t queries = 0;
  std::size_t k = 0;
  std::size_t candidates = 0;
  std::size_t probes = 0;
};
// Memory that a search of whole lists needs at least, with its result and the norms that it caches.
std::uint64_t least_search_bytes(const Context& context, const Ivf& index, const SearchShape& shape);

// Searches whole lists, those nearest to each query. Of a filter, only ids that single queries deny count.
// The options are checked.
Neighbors search_nearest_lists(const Context& context, const Ivf& index, const RowsView& queries,
                               std::size_t k, const IvfSearchOptions& options);

}  // namespace nearwise::ivf
