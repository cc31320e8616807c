// One index on several devices.
//
// Sharded     each part holds some of the vectors and searches all queries; the results are merged
// Replicated  each copy holds all vectors and searches some of the queries
//
// Members are exact search (Exact), inverted files (Ivf), graph indexes (GraphIndex) or nested:
// Sharded<Replicated<Exact>> is shards x copies. The result is that of one index over all vectors, bit for
// bit, with two exceptions: under a filter, parts of an inverted file may find more, as each probes lists
// with allowed vectors of its own; and parts of a graph index are graphs of their own, whose best results are
// merged. Parts of an inverted file come from one training. Vectors of inverted files and graph indexes keep
// their ids, which must differ between parts. Members are searched concurrently, one thread each; if one
// fails, the others are cancelled, and the error names its device (Error(invalid_argument) does not).
// Progress and cancellation are those of the context of the call, not of the members' contexts. Queries must
// be readable by every member: on the host, unless all members are on one device.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/exact.h"
#include "nearwise/export.h"
#include "nearwise/graph_index.h"
#include "nearwise/ivf.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/searchable.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

// An index and the context it is searched in. For a nested index: the context in which results are merged.
template <Searchable Index>
struct Placed {
  Context context;
  Index index;
};

// Implemented in src/shard for every kind of index.
namespace shard {

struct Member {
  Context context;
  std::size_t size = 0;
  Metric metric = Metric::sqeuclidean;
  // One inverted file of the member, to compare quantizers and read defaults; null if it has none.
  const Ivf* ivf = nullptr;
};
using Members = std::vector<Member>;

// Searches one member in a context derived from its own.
template <typename Options>
using Search = std::function<Neighbors(std::size_t member, const Context& context, RowsView queries,
                                       std::size_t k, const Options& options)>;

template <typename Options>
using RangeSearch = std::function<RangeNeighbors(std::size_t member, const Context& context, RowsView queries,
                                                 float radius, const Options& options)>;

std::size_t rows_of(const Members& parts);
void check_parts(const Members& parts);
void check_copies(const Members& copies);

Neighbors search_parts(const Context& context, const Members& parts, RowsView queries, std::size_t k,
                       const ExactSearchOptions& options, const Search<ExactSearchOptions>& search);
// Candidates of all parts are merged before re-ranking, which runs in `context`.
Neighbors search_parts(const Context& context, const Members& parts, RowsView queries, std::size_t k,
                       const IvfSearchOptions& options, const Search<IvfSearchOptions>& search);
Neighbors search_parts(const Context& context, const Members& parts, RowsView queries, std::size_t k,
                       const GraphSearchOptions& options, const Search<GraphSearchOptions>& search);
Neighbors search_copies(const Context& context, const Members& copies, RowsView queries, std::size_t k,
                        const ExactSearchOptions& options, const Search<ExactSearchOptions>& search);
Neighbors search_copies(const Context& context, const Members& copies, RowsView queries, std::size_t k,
                        const IvfSearchOptions& options, const Search<IvfSearchOptions>& search);
Neighbors search_copies(const Context& context, const Members& copies, RowsView queries, std::size_t k,
                        const GraphSearchOptions& options, const Search<GraphSearchOptions>& search);

RangeNeighbors range_search_parts(const Context& context, const Members& parts, RowsView queries,
                                  float radius, const ExactRangeOptions& options,
                                  const RangeSearch<ExactRangeOptions>& search);
RangeNeighbors range_search_parts(const Context& context, const Members& parts, RowsView queries,
                                  float radius, const IvfRangeOptions& options,
                                  const RangeSearch<IvfRangeOptions>& search);
RangeNeighbors range_search_parts(const Context& context, const Members& parts, RowsView queries,
                                  float radius, const GraphSearchOptions& options,
                                  const RangeSearch<GraphSearchOptions>& search);
RangeNeighbors range_search_copies(const Context& context, const Members& copies, RowsView queries,
                                   float radius, const ExactRangeOptions& options,
                                   const RangeSearch<ExactRangeOptions>& search);
RangeNeighbors range_search_copies(const Context& context, const Members& copies, RowsView queries,
                                   float radius, const IvfRangeOptions& options,
                                   const RangeSearch<IvfRangeOptions>& search);
RangeNeighbors range_search_copies(const Context& context, const Members& copies, RowsView queries,
                                   float radius, const GraphSearchOptions& options,
                                   const RangeSearch<GraphSearchOptions>& search);

template <Searchable Index>
const Ivf* ivf_of(const Index& index) {
  if constexpr (std::same_as<Index, Ivf>)
    return &index;
  else if constexpr (requires { index.ivf(); })
    return index.ivf();
  else
    return nullptr;
}

template <Searchable Index>
Members members_of(const std::vector<Placed<Index>>& placed) {
  Members members;
  for (const Placed<Index>& one : placed)
    members.push_back({one.context, one.index.size(), one.index.metric(), ivf_of(one.index)});
  return members;
}

// The search function over a vector of members, which must outlive it.
template <Searchable Index>
Search<typename Index::SearchOptions> search_of(const std::vector<Placed<Index>>& placed) {
  return [&placed](std::size_t member, const Context& context, RowsView queries, std::size_t k,
                   const typename Index::SearchOptions& options) {
    return placed[member].index.search(context, queries, k, options);
  };
}

template <Searchable Index>
RangeSearch<typename Index::RangeSearchOptions> range_search_of(const std::vector<Placed<Index>>& placed) {
  return [&placed](std::size_t member, const Context& context, RowsView queries, float radius,
                   const typename Index::RangeSearchOptions& options) {
    return placed[member].index.range_search(context, queries, radius, options);
  };
}

}  // namespace shard

template <Searchable Index>
class Sharded {
 public:
  using SearchOptions = typename Index::SearchOptions;
  using RangeSearchOptions = typename Index::RangeSearchOptions;

  // Vectors of exact search are numbered consecutively over the parts; others keep their ids.
  explicit Sharded(std::vector<Placed<Index>> parts)
      : parts_(std::move(parts)), members_(shard::members_of(parts_)) {
    shard::check_parts(members_);
  }

  // Results are merged by the threads of `context`, and charged to it.
  Neighbors search(const Context& context, RowsView queries, std::size_t k,
                   const SearchOptions& options = {}) const {
    return shard::search_parts(context, members_, queries, k, options, shard::search_of(parts_));
  }

  RangeNeighbors range_search(const Context& context, RowsView queries, float radius,
                              const RangeSearchOptions& options = {}) const {
    return shard::range_search_parts(context, members_, queries, radius, options,
                                     shard::range_search_of(parts_));
  }

  std::size_t size() const { return shard::rows_of(members_); }
  Metric metric() const { return members_.front().metric; }
  const Ivf* ivf() const { return members_.front().ivf; }

 private:
  std::vector<Placed<Index>> parts_;
  shard::Members members_;
};

template <Searchable Index>
class Replicated {
 public:
  using SearchOptions = typename Index::SearchOptions;
  using RangeSearchOptions = typename Index::RangeSearchOptions;

  explicit Replicated(std::vector<Placed<Index>> copies)
      : copies_(std::move(copies)), members_(shard::members_of(copies_)) {
    shard::check_copies(members_);
  }

  Neighbors search(const Context& context, RowsView queries, std::size_t k,
                   const SearchOptions& options = {}) const {
    return shard::search_copies(context, members_, queries, k, options, shard::search_of(copies_));
  }

  RangeNeighbors range_search(const Context& context, RowsView queries, float radius,
                              const RangeSearchOptions& options = {}) const {
    return shard::range_search_copies(context, members_, queries, radius, options,
                                      shard::range_search_of(copies_));
  }

  std::size_t size() const { return members_.front().size; }
  Metric metric() const { return members_.front().metric; }
  const Ivf* ivf() const { return members_.front().ivf; }

 private:
  std::vector<Placed<Index>> copies_;
  shard::Members members_;
};

// Equal consecutive parts of the base, one per context. The base is on the host and must outlive the index.
// Progress and cancellation are those of the first context.
Sharded<Exact> shard_exact(std::span<const Context> contexts, RowsView base,
                           const ExactOptions& options = {});
Replicated<Exact> replicate_exact(std::span<const Context> contexts, RowsView base,
                                  const ExactOptions& options = {});
// contexts.size() is a multiple of `shards`: the first contexts.size() / shards hold the first part, and so
// on.
Sharded<Replicated<Exact>> shard_and_replicate_exact(std::span<const Context> contexts, std::size_t shards,
                                                     RowsView base, const ExactOptions& options = {});

// The same for an inverted file, cut in list order, so that nearly every list is in one part. Parts are
// copies, charged to their contexts. The index must not change while they are made, since each part is copied
// by a separate call.
Sharded<Ivf> shard_ivf(std::span<const Context> contexts, const Ivf& index);
Replicated<Ivf> replicate_ivf(std::span<const Context> contexts, const Ivf& index);
Sharded<Replicated<Ivf>> shard_and_replicate_ivf(std::span<const Context> contexts, std::size_t shards,
                                                 const Ivf& index);

// A graph index of equal consecutive parts of the rows, one per context, each built and calibrated in it.
// options.ids are those of all rows; empty: row numbers.
Sharded<GraphIndex> shard_graph_index(
    std::span<const Context> contexts, RowsView rows, const GraphIndexOptions& options = {},
    const std::optional<GraphCalibrationOptions>& calibration = GraphCalibrationOptions());

}  // namespace nearwise
