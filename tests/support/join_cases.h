// Groups that are joined: random rows, random groups, some entries old, and the lists that a device makes of
// them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "backend/dispatch.h"
#include "graph/build/sample_neighbors.h"
#include "ops/exact_search.h"
#include "support/knn_cases.h"

namespace nearwise::support {

struct JoinShape {
  Kind kind = Kind::normal;
  Metric metric = Metric::sqeuclidean;
  ElementType type = ElementType::f32;
  Layout layout = Layout::dense;
  std::size_t rows = 100;
  std::size_t dim = 8;
  std::size_t degree = 5;
  std::size_t groups = 3;    // of each call
  std::size_t members = 40;  // of the largest group, at most
  bool bipartite = false;    // whether those of the second call are
  std::size_t rounds = 0;    // of descent, after that
  std::size_t sample = 4;    // of a round
  std::uint64_t seed = 1;
};

inline std::string describe(const JoinShape& shape) {
  return fmt::format(
      "{} rows of {}, degree {}, {} groups of up to {}, {} rounds of {}, {}{} {} {} {}, seed {}", shape.rows,
      shape.dim, shape.degree, shape.groups, shape.members, shape.rounds, shape.sample,
      shape.bipartite ? "bipartite, " : "", name(shape.type), name(shape.layout), name(shape.kind),
      name(shape.metric), shape.seed);
}

// Two calls: the second finds lists that the caller has changed.
class JoinCase {
 public:
  explicit JoinCase(const JoinShape& shape)
      : shape_(shape),
        rows_(generate(shape.kind, shape.rows, shape.dim, shape.seed), shape.type, shape.layout),
        random_(shape.seed, 91),
        order_(shape.rows) {
    std::iota(order_.begin(), order_.end(), 0U);
    shuffle(order_, order_.size());
    for (Call& call : calls_)
      for (std::size_t group = 0; group < shape.groups; ++group) add_group(call);
  }

  JoinCosts costs(const Context& context) const {
    const auto stream = open_stream(context);
    return dispatch(&Ops::join_costs, "join_costs", *stream,
                    KnnCostsArgs{shape_.dim, shape_.degree, shape_.metric, shape_.type, shape_.type});
  }
  std::size_t largest_group() const { return largest_; }

  std::vector<NeighborEntry> lists(const Context& context) const {
    std::vector<NeighborEntry> lists(shape_.rows * shape_.degree, empty_entry);
    const RowsView rows = rows_;
    const auto stream = open_stream(context);
    const std::vector<float> centre = centre_of(*stream, rows, shape_.metric);
    const auto state = dispatch(&Ops::start_join, "start_join", *stream,
                                StartJoinArgs{.rows = rows,
                                              .order = order_,
                                              .metric = shape_.metric,
                                              .type = scan_type(*stream, rows, shape_.metric),
                                              .centre = centre,
                                              .degree = shape_.degree,
                                              .lists = lists});
    for (const Call& call : calls_) {
      dispatch(&Ops::join_groups, "join_groups", *stream,
               JoinGroupsArgs{
                   *state, {call.members, call.ends, call.new_counts, shape_.bipartite && &call != calls_}});
      for (std::size_t i = 0; i < lists.size(); i += 3)
        if (lists[i] != empty_entry) lists[i] = as_old(lists[i]);
    }
    for (std::size_t round = 0; round < shape_.rounds; ++round)
      descend(context, *stream, *state, lists, round);
    return lists;
  }

 private:
  // By the backend, where it draws neighbours itself.
  void descend(const Context& context, Stream& stream, JoinState& state, std::vector<NeighborEntry>& lists,
               std::size_t round) const {
    const Random random(shape_.seed, 1000 + round);
    if (stream.context.backend.ops.join_neighborhoods != nullptr) {
      dispatch(&Ops::join_neighborhoods, "join_neighborhoods", stream,
               JoinNeighborhoodsArgs{state, shape_.sample, random});
      return;
    }
    graph::Neighborhoods around(context, lists, shape_.degree, shape_.sample, random);
    dispatch(&Ops::join_groups, "join_groups", stream, JoinGroupsArgs{state, around.groups(0)});
  }

  struct Call {
    std::vector<std::uint32_t> members;
    std::vector<std::uint64_t> ends;
    std::vector<std::uint32_t> new_counts;
  };

  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_.below(drawn_++, bound)); }

  // The first `count` become a random choice.
  void shuffle(std::vector<std::uint32_t>& places, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) std::swap(places[i], places[i + below(places.size() - i)]);
  }

  // All new, nobody, or some.
  void add_group(Call& call) {
    std::vector<std::uint32_t> all(shape_.rows);
    std::iota(all.begin(), all.end(), 0U);
    const std::size_t size = 1 + below(std::min(shape_.members, shape_.rows));
    shuffle(all, size);
    call.members.insert(call.members.end(), all.begin(), all.begin() + static_cast<std::ptrdiff_t>(size));
    call.ends.push_back(call.members.size());
    const std::size_t some[] = {size, below(size + 1), below(size + 1), 0};
    call.new_counts.push_back(static_cast<std::uint32_t>(some[below(8) == 0 ? 3 : below(3)]));
    largest_ = std::max(largest_, size);
  }

  const JoinShape shape_;
  const Rows rows_;
  const Random random_;
  std::uint64_t drawn_ = 0;
  std::size_t largest_ = 0;
  std::vector<std::uint32_t> order_;
  Call calls_[2];
};

// Where two sets of lists first differ.
inline ::testing::AssertionResult same_lists(const std::vector<NeighborEntry>& expected,
                                             const std::vector<NeighborEntry>& given, std::size_t degree) {
  const auto [left, right] = std::ranges::mismatch(expected, given);
  if (left == expected.end() && right == given.end()) return ::testing::AssertionSuccess();
  if (left == expected.end() || right == given.end()) return ::testing::AssertionFailure() << "other sizes";
  const auto index = static_cast<std::size_t>(left - expected.begin());
  const auto text = [](NeighborEntry entry) {
    return fmt::format("{} at {}{}", number_of(entry), key_of(entry), is_new(entry) ? ", new" : "");
  };
  return ::testing::AssertionFailure()
         << fmt::format("place {}, entry {}: expected {}, got {}", index / degree, index % degree,
                        text(*left), text(*right));
}

}  // namespace nearwise::support
