// Pruning and beam search against their definitions, on every instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "backend/dispatch.h"
#include "core/filter.h"
#include "core/memory.h"
#include "graph_index/entry_tree.h"
#include "graph_index/graph_index_state.h"
#include "graph_index/search_graph.h"
#include "oracle/search_graph.h"
#include "support/ivf_cases.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::every_instruction_set;

constexpr std::size_t row_count = 400;
constexpr std::size_t degree = 16;

// Codes with many equal rows and distances.
Matrix<std::uint8_t> make_codes(std::size_t rows, unsigned values, std::uint64_t seed) {
  Matrix<std::uint8_t> codes(rows, 64);
  const Random random(seed);
  for (std::size_t i = 0; i < rows * 64; ++i)
    codes.data()[i] = static_cast<std::uint8_t>(i % 64 < 6 ? random.below(i, values) : 0);
  return codes;
}

Matrix<std::int32_t> make_lists(std::size_t rows, std::size_t length, std::uint64_t seed) {
  Matrix<std::int32_t> lists(rows, length);
  const Random random(seed);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t used = random.below(row, length + 1);
    for (std::size_t i = 0; i < length; ++i)
      lists(row, i) =
          i < used ? static_cast<std::int32_t>(random.below(rows + row * length + i, rows)) : no_edge;
  }
  return lists;
}

TEST(PruneEdges, KeepsWhatTheDefinitionKeeps) {
  for (const unsigned values : {3U, 256U})
    for (const bool keep_short_lists : {false, true}) {
      const Matrix<std::uint8_t> codes = make_codes(row_count, values, 1);
      const Matrix<std::int32_t> lists = make_lists(row_count, 40, 2);
      // Further candidates; row 7 is a hub with more than are considered.
      std::vector<std::uint64_t> offsets = {0};
      std::vector<std::uint32_t> others;
      const Random random(3);
      for (std::size_t row = 0; row < row_count; ++row) {
        const std::size_t more = row == 7 ? 300 : random.below(row, 12);
        for (std::size_t i = 0; i < more; ++i)
          others.push_back(
              static_cast<std::uint32_t>(row == 7 ? i : random.below(1000 + row * 20 + i, row_count)));
        offsets.push_back(others.size());
      }
      for (const Context& context : every_instruction_set()) {
        SCOPED_TRACE(context.isa());
        Matrix<std::int32_t> edges(row_count, degree);
        const auto stream = open_stream(context);
        dispatch(&Ops::prune_edges, "prune_edges", *stream,
                 PruneEdgesArgs{.codes = codes.view(),
                                .lists = lists.view(),
                                .offsets = offsets,
                                .others = others,
                                .keep_short_lists = keep_short_lists,
                                .edges = edges.view()});
        for (std::size_t row = 0; row < row_count; ++row) {
          std::set<std::uint32_t> candidates(others.begin() + static_cast<std::ptrdiff_t>(offsets[row]),
                                             others.begin() + static_cast<std::ptrdiff_t>(offsets[row + 1]));
          for (const std::int32_t other : lists.row(row))
            if (other != no_edge) candidates.insert(static_cast<std::uint32_t>(other));
          std::vector<std::int32_t> expected =
              oracle::prune(codes.view(), row, candidates, degree, keep_short_lists);
          expected.resize(degree, no_edge);
          ASSERT_EQ(std::vector<std::int32_t>(edges.row(row).begin(), edges.row(row).end()), expected)
              << "row " << row;
        }
      }
    }
}

TEST(PruneEdges, SomeRowsGetWhatTheyGetAmongAll) {
  const Matrix<std::uint8_t> codes = make_codes(row_count, 256, 4);
  const Matrix<std::int32_t> lists = make_lists(row_count, 40, 5);
  const std::vector<std::uint32_t> some = {399, 7, 8, 0, 250};  // in any order
  Matrix<std::int32_t> given(some.size(), 40);
  std::vector<std::uint64_t> offsets = {0};
  std::vector<std::uint32_t> others;
  for (std::size_t place = 0; place < some.size(); ++place) {
    std::ranges::copy(lists.row(some[place]), given.row(place).begin());
    for (std::size_t i = 0; i < 20 * place; ++i)
      others.push_back(static_cast<std::uint32_t>((some[place] + 3 * i) % row_count));
    offsets.push_back(others.size());
  }
  for (const Context& context : every_instruction_set()) {
    SCOPED_TRACE(context.isa());
    Matrix<std::int32_t> edges(some.size(), degree);
    const auto stream = open_stream(context);
    dispatch(&Ops::prune_edges, "prune_edges", *stream,
             PruneEdgesArgs{.codes = codes.view(),
                            .rows = some,
                            .lists = given.view(),
                            .offsets = offsets,
                            .others = others,
                            .keep_short_lists = true,
                            .edges = edges.view()});
    for (std::size_t place = 0; place < some.size(); ++place) {
      std::set<std::uint32_t> candidates(others.begin() + static_cast<std::ptrdiff_t>(offsets[place]),
                                         others.begin() + static_cast<std::ptrdiff_t>(offsets[place + 1]));
      for (const std::int32_t other : lists.row(some[place]))
        if (other != no_edge) candidates.insert(static_cast<std::uint32_t>(other));
      std::vector<std::int32_t> expected = oracle::prune(codes.view(), some[place], candidates, degree, true);
      expected.resize(degree, no_edge);
      ASSERT_EQ(std::vector<std::int32_t>(edges.row(place).begin(), edges.row(place).end()), expected)
          << "row " << some[place];
    }
    // In the memory of the lists, whose free places are not candidates.
    Matrix<std::int32_t> both(some.size(), degree);
    for (std::size_t place = 0; place < some.size(); ++place)
      std::copy_n(edges.row(place).begin(), degree, both.row(place).begin());
    dispatch(&Ops::prune_edges, "prune_edges", *stream,
             PruneEdgesArgs{.codes = codes.view(),
                            .rows = some,
                            .lists = both.view(),
                            .offsets = offsets,
                            .others = others,
                            .keep_short_lists = true,
                            .edges = both.view()});
    Matrix<std::int32_t> apart(some.size(), degree);
    dispatch(&Ops::prune_edges, "prune_edges", *stream,
             PruneEdgesArgs{.codes = codes.view(),
                            .rows = some,
                            .lists = edges.view(),
                            .offsets = offsets,
                            .others = others,
                            .keep_short_lists = true,
                            .edges = apart.view()});
    EXPECT_TRUE(std::equal(both.data(), both.data() + some.size() * degree, apart.data()));
  }
}

// u8 vectors are their own codes: the traversal can be followed by reported distances.
struct Bytes {
  support::Problem problem = support::clustered(row_count, 20, 9, 41, ElementType::u8);
  GraphIndex index = GraphIndex::build(support::one_thread(), problem.base, {.degree = degree}, std::nullopt);

  const graph_index::SearchedGraph& graph() const { return GraphIndexInternals::state_of(index).graph; }
  std::uint64_t distance(std::size_t query, std::size_t row) const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < 9; ++i) {
      const int difference =
          int{static_cast<std::uint8_t>(static_cast<RowsView>(problem.queries).row(query)[i])} -
          int{graph().rows.codes(row, i)};
      sum += static_cast<std::uint64_t>(difference * difference);
    }
    return sum;
  }
  // Leaves of the four nearest groups, the four nearest of these.
  std::vector<std::uint32_t> seeds(std::size_t query) const {
    const EntryTreeView entries = graph().entries.view();
    const auto nearest = [](std::vector<std::pair<std::uint64_t, std::uint32_t>> all) {
      std::sort(all.begin(), all.end());
      all.resize(std::min<std::size_t>(4, all.size()));
      return all;
    };
    std::vector<std::pair<std::uint64_t, std::uint32_t>> tops;
    for (std::uint32_t top = 0; top < entries.ends.size(); ++top) {
      std::uint64_t sum = 0;
      for (std::size_t i = 0; i < 9; ++i) {
        const int difference =
            int{static_cast<std::uint8_t>(static_cast<RowsView>(problem.queries).row(query)[i])} -
            int{entries.top_codes(top, i)};
        sum += static_cast<std::uint64_t>(difference * difference);
      }
      tops.emplace_back(sum, top);
    }
    std::vector<std::pair<std::uint64_t, std::uint32_t>> leaves;
    for (const auto& [key, top] : nearest(tops))
      for (std::uint32_t leaf = top == 0 ? 0 : entries.ends[top - 1]; leaf < entries.ends[top]; ++leaf)
        leaves.emplace_back(distance(query, entries.rows[leaf]), leaf);
    std::vector<std::uint32_t> rows;
    for (const auto& [key, leaf] : nearest(leaves)) rows.push_back(entries.rows[leaf]);
    return rows;
  }
};

TEST(SearchGraph, TheBeamIsThatOfTheDefinition) {
  const Bytes bytes;
  for (const Context& context : every_instruction_set())
    for (const std::size_t beam : {1UL, 5UL, 30UL}) {
      const Neighbors found =
          graph_index::search_rows(context, bytes.graph(), bytes.problem.queries, {.k = beam, .beam = beam});
      for (std::size_t query = 0; query < 20; ++query) {
        std::vector<std::uint32_t> expected =
            oracle::beam_search(bytes.index.edges(), bytes.seeds(query), beam, [&](std::uint32_t row) {
              return bytes.distance(query, row);
            }).beam;
        for (std::size_t i = 0; i < beam; ++i)
          ASSERT_EQ(found.ids(query, i), i < expected.size() ? Id{expected[i]} : no_id)
              << context.isa() << " query " << query << " place " << i;
      }
    }
}

TEST(SearchGraph, AnAbsentRowIsNotFound) {
  const Bytes bytes;
  std::vector<std::uint32_t> absent;
  for (std::uint32_t query = 0; query < 20; ++query) absent.push_back(query);
  const Neighbors found = graph_index::search_rows(support::one_thread(), bytes.graph(),
                                                   static_cast<RowsView>(bytes.problem.base).slice(0, 20),
                                                   {.k = 10, .beam = 20, .absent = absent});
  for (std::size_t query = 0; query < 20; ++query)
    // Each query is a row, which would be the first result.
    for (const Id id : found.ids.row(query)) EXPECT_NE(id, static_cast<Id>(query));
}

TEST(SearchGraph, ASearchLeavesNoTraceForTheNext) {
  const support::Problem problem = support::clustered(300, 5, 4, 42);
  const GraphIndex index =
      GraphIndex::build(support::one_thread(), problem.base, {.degree = degree}, std::nullopt);
  const Neighbors once = index.search(support::one_thread(), problem.queries, 10, {.beam = 300});
  const Neighbors again = index.search(support::one_thread(), problem.queries, 10, {.beam = 300});
  EXPECT_TRUE(support::same(support::as_expected(once), again));
}

}  // namespace
}  // namespace nearwise
