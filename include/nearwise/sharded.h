// One index on several devices.
//
// Sharded     every part holds some of the rows and sees all queries; their answers are joined
// Replicated  every copy holds all rows and sees some of the queries
//
// They nest: Sharded<Replicated<Exact>> is shards x copies. The answer is that of one index over all rows; for Exact, to
// the bit. Parts are searched at once, each by a thread of its own. One that fails stops the others, and the error names its
// device. Progress and cancellation are those of the context of the call; those of the members' own contexts are not
// looked at. Queries must be where every member can read them: on the host, unless all are on one device.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/exact.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/types.h"

namespace nearwise {

template <typename Index>
concept Searchable = std::movable<Index> &&
    requires(const Index& index, const Context& context, RowsView queries) {
  { index.knn(context, queries, std::size_t{1}, ShortRows::pad) } -> std::same_as<Neighbors>;
  { index.size() } -> std::same_as<std::size_t>;
  { index.metric() } -> std::same_as<Metric>;
};

// An index and where it is searched. For a nested one: the context in which its answers are joined.
template <Searchable Index>
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
Neighbors search_copies(const Context& context, const Members& copies, RowsView queries, std::size_t k,
                        ShortRows short_rows, const Search& search);

template <Searchable Index>
Members members_of(const std::vector<Placed<Index>>& placed) {
  Members members;
  for (const Placed<Index>& one : placed)
    members.push_back({one.context, one.index.size(), one.index.metric()});
  return members;
}

}  // namespace shard

template <Searchable Index>
class Sharded {
 public:
  // Rows are numbered through: those of a part begin where the part before ended.
  explicit Sharded(std::vector<Placed<Index>> parts)
      : parts_(std::move(parts)), members_(shard::members_of(parts_)) {
    shard::check_parts(members_);
  }

  // The answers are joined by the context's threads, on its budget.
  Neighbors knn(const Context& context, RowsView queries, std::size_t k,
                ShortRows short_rows = ShortRows::refuse) const {
    return shard::search_parts(context, members_, queries, k, short_rows,
                               [&](std::size_t part, const Context& own, RowsView some) {
                                 return parts_[part].index.knn(own, some, k, ShortRows::pad);
                               });
  }

  std::size_t size() const { return shard::rows_of(members_); }
  Metric metric() const { return members_.front().metric; }

 private:
  std::vector<Placed<Index>> parts_;
  shard::Members members_;
};

template <Searchable Index>
class Replicated {
 public:
  explicit Replicated(std::vector<Placed<Index>> copies)
      : copies_(std::move(copies)), members_(shard::members_of(copies_)) {
    shard::check_copies(members_);
  }

  Neighbors knn(const Context& context, RowsView queries, std::size_t k,
                ShortRows short_rows = ShortRows::refuse) const {
    return shard::search_copies(context, members_, queries, k, short_rows,
                                [&](std::size_t copy, const Context& own, RowsView some) {
                                  return copies_[copy].index.knn(own, some, k, ShortRows::pad);
                                });
  }

  std::size_t size() const { return members_.front().size; }
  Metric metric() const { return members_.front().metric; }

 private:
  std::vector<Placed<Index>> copies_;
  shard::Members members_;
};

// Consecutive rows, evenly cut, one part for each context. The rows lie on the host, and must outlive the index. Progress
// and cancellation are those of the first context.
Sharded<Exact> shard_exact(std::span<const Context> contexts, RowsView base,
                           const ExactOptions& options = {});
Replicated<Exact> replicate_exact(std::span<const Context> contexts, RowsView base,
                                  const ExactOptions& options = {});
// contexts.size() is a multiple of `shards`: the first contexts.size() / shards hold the first part, and so on.
Sharded<Replicated<Exact>> shard_and_replicate_exact(std::span<const Context> contexts, std::size_t shards,
                                                     RowsView base, const ExactOptions& options = {});

}  // namespace nearwise
