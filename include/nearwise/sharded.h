// One index on several devices.
//
// Sharded     every part holds some of the rows and sees all queries; their answers are joined
// Replicated  every copy holds all rows and sees some of the queries
//
// They hold exact search (Exact) and inverted files (Ivf), and they nest: Sharded<Replicated<Exact>> is
// shards x copies. The answer is that of one index over all rows, to the bit. Parts of an inverted file are
// of one training, and their rows have the ids they were added under. Parts are searched at once, each by a
// thread of its own. One that fails stops the others, and the error names its device. Progress and
// cancellation are those of the context of the call; those of the members' own contexts are not looked at.
// Queries must be where every member can read them: on the host, unless all are on one device.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/exact.h"
#include "nearwise/export.h"
#include "nearwise/ivf.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

template <typename Index>
concept Searchable = std::movable<Index> &&
    requires(const Index& index, const Context& context, RowsView queries) {
  { index.search(context, queries, std::size_t{1}, ShortRows::pad) } -> std::same_as<Neighbors>;
  { index.size() } -> std::same_as<std::size_t>;
  { index.metric() } -> std::same_as<Metric>;
};

// Inverted files, and what is made of them.
template <typename Index>
concept SearchableLists = std::movable<Index> &&
    requires(const Index& index, const Context& context, RowsView queries, const IvfSearchOptions& options) {
  { index.search(context, queries, std::size_t{1}, options) } -> std::same_as<Neighbors>;
  { index.size() } -> std::same_as<std::size_t>;
  { index.metric() } -> std::same_as<Metric>;
};

template <typename Index>
concept Shardable = Searchable<Index> || SearchableLists<Index>;

// An index and where it is searched. For a nested one: the context in which its answers are joined.
template <Shardable Index>
struct Placed {
  Context context;
  Index index;
};

// What is the same for every kind of index: src/shard.
namespace shard {

struct Member {
  Context context;
  std::size_t size = 0;
  Metric metric = Metric::sqeuclidean;
};
using Members = std::vector<Member>;

// Of one member, in a context derived from its own; short rows are padded.
using Search = std::function<Neighbors(std::size_t member, const Context& context, RowsView queries)>;

std::size_t rows_of(const Members& parts);
void check_parts(const Members& parts);
void check_copies(const Members& copies);
Neighbors search_parts(const Context& context, const Members& parts, RowsView queries, std::size_t k,
                       ShortRows short_rows, const Search& search);
// operation: what messages and progress call it.
Neighbors search_copies(const Context& context, const Members& copies, RowsView queries, std::size_t k,
                        ShortRows short_rows, const Search& search, const char* operation = "knn");

// Of inverted files: one of every member's, for what all of them have in common.
using Indexes = std::vector<const Ivf*>;
// k and options are not the caller's: re-ranking is done once over all parts.
using ListSearch = std::function<Neighbors(std::size_t member, const Context& context, RowsView queries,
                                           std::size_t k, const IvfSearchOptions& options)>;

void check_quantizers(const Indexes& indexes);
Neighbors search_list_parts(const Context& context, const Members& parts, const Indexes& indexes,
                            RowsView queries, std::size_t k, const IvfSearchOptions& options,
                            const ListSearch& search);

template <SearchableLists Index>
const Ivf& one_of(const Index& index) {
  if constexpr (std::is_base_of_v<Ivf, Index>)
    return index;
  else
    return index.one();
}

template <SearchableLists Index>
Indexes indexes_of(const std::vector<Placed<Index>>& placed) {
  Indexes indexes;
  for (const Placed<Index>& each : placed) indexes.push_back(&one_of(each.index));
  return indexes;
}

template <Shardable Index>
Members members_of(const std::vector<Placed<Index>>& placed) {
  Members members;
  for (const Placed<Index>& one : placed)
    members.push_back({one.context, one.index.size(), one.index.metric()});
  return members;
}

}  // namespace shard

template <Shardable Index>
class Sharded;
template <Shardable Index>
class Replicated;

template <Searchable Index>
class Sharded<Index> {
 public:
  // Rows are numbered through: those of a part begin where the part before ended.
  explicit Sharded(std::vector<Placed<Index>> parts)
      : parts_(std::move(parts)), members_(shard::members_of(parts_)) {
    shard::check_parts(members_);
  }

  // The answers are joined by the context's threads, on its budget.
  Neighbors search(const Context& context, RowsView queries, std::size_t k,
                   ShortRows short_rows = ShortRows::refuse) const {
    return shard::search_parts(context, members_, queries, k, short_rows,
                               [&](std::size_t part, const Context& own, RowsView some) {
                                 return parts_[part].index.search(own, some, k, ShortRows::pad);
                               });
  }

  std::size_t size() const { return shard::rows_of(members_); }
  Metric metric() const { return members_.front().metric; }

 private:
  std::vector<Placed<Index>> parts_;
  shard::Members members_;
};

template <Searchable Index>
class Replicated<Index> {
 public:
  explicit Replicated(std::vector<Placed<Index>> copies)
      : copies_(std::move(copies)), members_(shard::members_of(copies_)) {
    shard::check_copies(members_);
  }

  Neighbors search(const Context& context, RowsView queries, std::size_t k,
                   ShortRows short_rows = ShortRows::refuse) const {
    return shard::search_copies(context, members_, queries, k, short_rows,
                                [&](std::size_t copy, const Context& own, RowsView some) {
                                  return copies_[copy].index.search(own, some, k, ShortRows::pad);
                                });
  }

  std::size_t size() const { return members_.front().size; }
  Metric metric() const { return members_.front().metric; }

 private:
  std::vector<Placed<Index>> copies_;
  shard::Members members_;
};

template <SearchableLists Index>
class Sharded<Index> {
 public:
  explicit Sharded(std::vector<Placed<Index>> parts)
      : parts_(std::move(parts)), members_(shard::members_of(parts_)) {
    shard::check_parts(members_);
    shard::check_quantizers(shard::indexes_of(parts_));
  }

  // As Ivf::search. Candidates of all parts are merged before re-ranking, which runs on the context.
  Neighbors search(const Context& context, RowsView queries, std::size_t k,
                   const IvfSearchOptions& options = {}) const {
    return shard::search_list_parts(context, members_, shard::indexes_of(parts_), queries, k, options,
                                    [&](std::size_t part, const Context& own, RowsView some,
                                        std::size_t own_k, const IvfSearchOptions& own_options) {
                                      return parts_[part].index.search(own, some, own_k, own_options);
                                    });
  }

  std::size_t size() const { return shard::rows_of(members_); }
  Metric metric() const { return members_.front().metric; }

 private:
  std::vector<Placed<Index>> parts_;
  shard::Members members_;
};

template <SearchableLists Index>
class Replicated<Index> {
 public:
  explicit Replicated(std::vector<Placed<Index>> copies)
      : copies_(std::move(copies)), members_(shard::members_of(copies_)) {
    shard::check_copies(members_);
    shard::check_quantizers(shard::indexes_of(copies_));
  }

  Neighbors search(const Context& context, RowsView queries, std::size_t k,
                   const IvfSearchOptions& options = {}) const {
    return shard::search_copies(
        context, members_, queries, k, ShortRows::pad,
        [&](std::size_t copy, const Context& own, RowsView some) {
          return copies_[copy].index.search(own, some, k, options);
        },
        "search");
  }

  std::size_t size() const { return members_.front().size; }
  Metric metric() const { return members_.front().metric; }
  const Ivf& one() const { return shard::one_of(copies_.front().index); }

 private:
  std::vector<Placed<Index>> copies_;
  shard::Members members_;
};

// Consecutive rows, evenly cut, one part for each context. The rows lie on the host, and must outlive the
// index. Progress and cancellation are those of the first context.
Sharded<Exact> shard_exact(std::span<const Context> contexts, RowsView base,
                           const ExactOptions& options = {});
Replicated<Exact> replicate_exact(std::span<const Context> contexts, RowsView base,
                                  const ExactOptions& options = {});
// contexts.size() is a multiple of `shards`: the first contexts.size() / shards hold the first part, and so
// on.
Sharded<Replicated<Exact>> shard_and_replicate_exact(std::span<const Context> contexts, std::size_t shards,
                                                     RowsView base, const ExactOptions& options = {});

// The same of the rows of an index, in the order of its lists: nearly all lists are whole in one part. Every
// part is a copy on the budget of its context.
Sharded<Ivf> shard_ivf(std::span<const Context> contexts, const Ivf& index);
Replicated<Ivf> replicate_ivf(std::span<const Context> contexts, const Ivf& index);
Sharded<Replicated<Ivf>> shard_and_replicate_ivf(std::span<const Context> contexts, std::size_t shards,
                                                 const Ivf& index);

}  // namespace nearwise
