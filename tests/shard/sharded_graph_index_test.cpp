// Graph indexes of parts of the vectors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "nearwise/exact.h"
#include "nearwise/graph_index.h"
#include "nearwise/sharded.h"
#include "support/concurrent_changes.h"
#include "support/error_of.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::error_of;
using support::ids_from;

constexpr std::size_t base_rows = 900;
constexpr std::size_t k = 10;

const support::Problem& problem() {
  static const support::Problem made = support::make_problem(
      {.kind = support::Kind::normal, .rows = base_rows, .queries = 40, .dim = 12, .seed = 61});
  return made;
}

RowsView base() { return problem().base; }
RowsView queries() { return problem().queries; }

std::vector<Context> contexts(std::size_t count) { return {count, Context::cpu({.threads = 1})}; }

GraphIndexOptions options(std::span<const Id> ids = {}) { return {.degree = 16, .ids = ids}; }

// The best of what the parts find by themselves.
TEST(ShardedGraphIndex, MergesTheResultsOfItsParts) {
  const Sharded<GraphIndex> index = shard_graph_index(contexts(3), base(), options());
  EXPECT_EQ(index.size(), base_rows);
  const Neighbors found = index.search(support::one_thread(), queries(), k, {.beam = 20});
  std::vector<Neighbors> of_parts;
  for (std::size_t part = 0; part < 3; ++part) {
    const std::vector<Id> ids = ids_from(static_cast<Id>(part * 300), 300);
    const GraphIndex own =
        GraphIndex::build(support::one_thread(), base().slice(part * 300, 300), options(ids));
    of_parts.push_back(own.search(support::one_thread(), queries(), k, {.beam = 20}));
  }
  for (std::size_t query = 0; query < queries().rows(); ++query) {
    std::vector<std::pair<float, Id>> all;
    for (const Neighbors& part : of_parts)
      for (std::size_t i = 0; i < k; ++i) all.emplace_back(part.distances(query, i), part.ids(query, i));
    std::ranges::sort(all);
    for (std::size_t i = 0; i < k; ++i) {
      ASSERT_EQ(found.ids(query, i), all[i].second);
      ASSERT_EQ(found.distances(query, i), all[i].first);
    }
  }
}

TEST(ShardedGraphIndex, GivenIdsAreThoseOfAllRows) {
  std::vector<Id> ids = ids_from(5000, base_rows, 3);
  std::ranges::reverse(ids);
  const Sharded<GraphIndex> index = shard_graph_index(contexts(4), base(), options(ids));
  const Neighbors found = index.search(support::one_thread(), base().slice(0, 50), 1, {.beam = base_rows});
  for (std::size_t row = 0; row < 50; ++row) EXPECT_EQ(found.ids(row, 0), ids[row]);
}

TEST(ShardedGraphIndex, ErrorsSayWhatIsWrong) {
  const auto message_of = [](const auto& call) { return std::string(error_of(call).what()); };
  EXPECT_NE(message_of([] {
              shard_graph_index(contexts(3), base().slice(0, 2), options());
            }).find("a row for each context, got 2 for 3"),
            std::string::npos);
  EXPECT_NE(message_of([] {
              shard_graph_index(contexts(2), base(), options(std::vector<Id>{1, 2}));
            }).find("got 2 ids for 900 rows"),
            std::string::npos);
  EXPECT_NE(message_of([] { shard_graph_index({}, base(), options()); }).find("context"), std::string::npos);
  const Sharded<GraphIndex> index = shard_graph_index(contexts(2), base(), options());
  const auto refused = [&](RowsView given, std::size_t count, const GraphSearchOptions& how = {}) {
    return error_of([&] { index.search(support::one_thread(), given, count, how); });
  };
  EXPECT_EQ(refused(queries(), 0).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(refused(queries(), 10, {.beam = 5}).code(), ErrorCode::invalid_argument);
  const RowsView narrow(queries().data(), queries().type(), queries().rows(), 5, queries().stride_bytes());
  EXPECT_EQ(refused(narrow, 10).code(), ErrorCode::invalid_argument);
}

TEST(ShardedGraphIndex, CopiesShareTheQueries) {
  std::vector<Placed<GraphIndex>> copies;
  for (const Context& own : contexts(3)) copies.push_back({own, GraphIndex::build(own, base(), options())});
  const Neighbors one = copies.front().index.search(support::one_thread(), queries(), k);
  const Replicated<GraphIndex> index(std::move(copies));
  EXPECT_EQ(index.size(), base_rows);
  EXPECT_TRUE(support::same(support::as_expected(one), index.search(support::one_thread(), queries(), k)));
}

}  // namespace
}  // namespace nearwise
