// Connections of graphs whose lists are not changed in place, against plain searches of the graph.
#include "graph_index/edges/reached_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/math/random.h"
#include "graph_index/edges/build_edges.h"

namespace nearwise::graph_index {
namespace {

constexpr std::size_t degree = 16;

Matrix<std::int32_t> lists_of(const std::vector<std::vector<std::int32_t>>& edges) {
  Matrix<std::int32_t> lists(edges.size(), degree);
  std::fill_n(lists.data(), edges.size() * degree, no_edge);
  for (std::size_t row = 0; row < edges.size(); ++row) std::ranges::copy(edges[row], lists.row(row).begin());
  return lists;
}

// Every row has edges to some others.
std::vector<std::vector<std::int32_t>> random_edges(std::size_t rows, std::size_t most, std::uint64_t seed) {
  const Random random(seed);
  std::vector<std::vector<std::int32_t>> edges(rows);
  std::uint64_t drawn = 0;
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t i = random.below(drawn++, most + 1); i > 0; --i)
      if (const auto target = static_cast<std::int32_t>(random.below(drawn++, rows));
          std::ranges::find(edges[row], target) == edges[row].end())
        edges[row].push_back(target);
  return edges;
}

// A chain of rows in random order, with edges in one direction: each scan follows few links.
std::vector<std::vector<std::int32_t>> chain(std::size_t rows, bool is_forward) {
  std::vector<std::int32_t> order(rows);
  std::iota(order.begin(), order.end(), 0);
  const Random random(5);
  for (std::size_t i = rows - 1; i > 1; --i) std::swap(order[i], order[1 + random.below(i, i)]);
  std::vector<std::vector<std::int32_t>> edges(rows);
  for (std::size_t i = 0; i + 1 < rows; ++i) {
    const auto from = static_cast<std::size_t>(is_forward ? order[i] : order[i + 1]);
    edges[from].push_back(is_forward ? order[i + 1] : order[i]);
  }
  return edges;
}

std::vector<bool> reached_by_search(const std::vector<std::vector<std::int32_t>>& edges) {
  std::vector<bool> reached(edges.size());
  std::vector<std::size_t> queue = {0};
  reached[0] = true;
  while (!queue.empty()) {
    const std::size_t row = queue.back();
    queue.pop_back();
    for (const std::int32_t target : edges[row]) {
      const auto next = static_cast<std::size_t>(target);
      if (!reached[next]) queue.push_back(next);
      reached[next] = true;
    }
  }
  return reached;
}

std::vector<std::vector<std::int32_t>> reversed(const std::vector<std::vector<std::int32_t>>& edges) {
  std::vector<std::vector<std::int32_t>> sources(edges.size());
  for (std::size_t row = 0; row < edges.size(); ++row)
    for (const std::int32_t target : edges[row])
      sources[static_cast<std::size_t>(target)].push_back(static_cast<std::int32_t>(row));
  return sources;
}

void expect_right(const std::vector<std::vector<std::int32_t>>& edges) {
  const Context context = Context::cpu({.threads = 1});
  const Matrix<std::int32_t> lists = lists_of(edges);
  const EdgeChanges changes(*context.state().budget, EdgeLists(lists));
  const std::vector<bool> reached = reached_by_search(edges);
  const auto sources = reversed(edges);
  const std::vector<bool> reaching = reached_by_search(sources);
  const RowMarks found = reached_rows(context, changes);
  const ReachingRows other = reaching_rows(context, changes);
  for (std::uint32_t row = 0; row < edges.size(); ++row) {
    EXPECT_EQ(found.has(row), reached[row]) << row;
    EXPECT_EQ(other.marks.has(row), reaching[row]) << row;
    if (reaching[row]) continue;
    const std::span<const std::uint32_t> of = other.sources->of(row);
    EXPECT_EQ(std::vector<std::int32_t>(of.begin(), of.end()), sources[row]) << row;
  }
}

TEST(ReachedRows, AreThoseOfASearch) {
  for (const std::size_t rows : {1, 2, 63, 64, 65, 500})
    for (const std::size_t most : {1, 2, 4})
      for (std::uint64_t seed = 0; seed < 5; ++seed) expect_right(random_edges(rows, most, seed));
  expect_right(chain(3000, true));
  expect_right(chain(3000, false));
}

// Would catch: edges that are read where the list was, not where it is now, or counted twice.
TEST(EdgeChanges, AreThoseOfListsChangedInPlace) {
  const Context context = Context::cpu({.threads = 1});
  const Random random(9);
  Matrix<std::int32_t> lists = lists_of(random_edges(50, degree, 2));
  EdgeChanges changes(*context.state().budget, EdgeLists(lists));
  Matrix<std::int32_t> expected = lists_of(random_edges(50, degree, 2));
  std::vector<std::size_t> replaced(50, 0);
  std::vector<std::int32_t> scratch;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const auto from = static_cast<std::uint32_t>(random.below(2 * i, 50));
    const auto to = static_cast<std::int32_t>(random.below(2 * i + 1, 50));
    const std::span<std::int32_t> list = expected.row(from);
    const auto end = std::ranges::find(list, no_edge);
    bool is_there = std::find(list.begin(), end, to) != end;
    if (!is_there && (end != list.end() || replaced[from] < degree / 4)) {
      (end != list.end() ? *end : list[degree - 1 - replaced[from]++]) = to;
      is_there = true;
    }
    EXPECT_EQ(changes.add(from, static_cast<std::uint32_t>(to)), is_there);
    const auto found = changes.list(from, scratch);
    EXPECT_TRUE(std::ranges::equal(found, list)) << i;
  }
  changes.for_each(
      [&](std::uint32_t row, std::span<const std::int32_t> added) { put_edges(lists.row(row), added); });
  EXPECT_TRUE(std::equal(lists.data(), lists.data() + 50 * degree, expected.data()));
}

// Would catch: lists in files that are connected otherwise than lists in memory.
TEST(ConnectRows, TakesListsInBlocks) {
  const Context context = Context::cpu({.threads = 1});
  const std::size_t rows = 300;
  Matrix<std::uint8_t> codes(rows, 64);
  const Random random(3);
  std::fill_n(codes.data(), rows * 64, std::uint8_t{0});
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t i = 0; i < 3; ++i)
      codes(row, i) = static_cast<std::uint8_t>(random.below(3 * row + i, 6));
  Matrix<std::int32_t> lists = lists_of(random_edges(rows, 1, 8));
  std::vector<MatrixView<const std::int32_t>> blocks;
  for (std::size_t first = 0; first < rows; first += 70)
    blocks.push_back({lists.row(first).data(), std::min<std::size_t>(70, rows - first), degree});
  const EdgeChanges changes = connect_rows(context, codes, 3, EdgeLists(blocks));
  Matrix<std::int32_t> put(rows, degree);
  std::copy_n(lists.data(), rows * degree, put.data());
  changes.for_each(
      [&](std::uint32_t row, std::span<const std::int32_t> added) { put_edges(put.row(row), added); });
  connect_rows(context, codes, 3, lists.view());
  EXPECT_TRUE(std::equal(lists.data(), lists.data() + rows * degree, put.data()));
  std::vector<std::vector<std::int32_t>> edges(rows);
  for (std::size_t row = 0; row < rows; ++row)
    for (const std::int32_t target : lists.row(row))
      if (target != no_edge) edges[row].push_back(target);
  EXPECT_TRUE(std::ranges::all_of(reached_by_search(edges), [](bool is) { return is; }));
  EXPECT_TRUE(std::ranges::all_of(reached_by_search(reversed(edges)), [](bool is) { return is; }));
}

// Would catch: reports at the beginning of each step only, which are far apart where vectors are many.
TEST(ConnectRows, ReportsWithinItsSteps) {
  const std::size_t rows = 40'000;
  Matrix<std::uint8_t> codes(rows, 64);
  const Random random(4);
  for (std::size_t i = 0; i < rows * 64; ++i)
    codes.data()[i] = static_cast<std::uint8_t>(random.below(i, 251));
  Matrix<std::int32_t> lists = lists_of(random_edges(rows, 4, 8));
  std::vector<std::uint64_t> done;
  double seconds = 0;  // between two readings of the clock, so that every report is due
  const Context context = Context::cpu({.threads = 1,
                                        .progress =
                                            [&](const Progress& now) {
                                              EXPECT_LT(now.done, now.total);
                                              done.push_back(now.done);
                                            },
                                        .clock = [&seconds] { return seconds += 1; }});
  connect_rows(context, codes, 64, lists.view());
  EXPECT_GT(done.size(), 20U);
  EXPECT_TRUE(std::ranges::is_sorted(done));
}

}  // namespace
}  // namespace nearwise::graph_index
