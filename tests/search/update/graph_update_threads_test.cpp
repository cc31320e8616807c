// Searches while other threads change a graph index: each of them sees one whole state.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

#include "nearwise/filter.h"
#include "nearwise/graph_index.h"
#include "search/update/changed_index.h"

namespace nearwise {
namespace {

using support::ids_from;
using support::Problem;

constexpr std::size_t base_rows = 600;
constexpr std::size_t added_rows = 60;
constexpr std::size_t k = 8;
constexpr Id first_added = 10'000;

// Base, then added vectors, then those that replace them; queries near all of them.
const Problem& problem() {
  static const Problem made = support::make_problem({.kind = support::Kind::normal,
                                                     .rows = base_rows + 2 * added_rows,
                                                     .queries = 24,
                                                     .dim = 7,
                                                     .seed = 17});
  return made;
}

RowsView base() { return problem().base; }
RowsView queries() { return problem().queries; }

GraphIndex built() {
  return GraphIndex::build(support::one_thread(), base().slice(0, base_rows), {.degree = 16}, std::nullopt);
}

std::vector<Id> added_ids() { return ids_from(first_added, added_rows); }

// The states that the index passes through, one call after the other.
constexpr std::size_t states = 3;
void change(const Context& context, GraphIndex& index, std::size_t to) {
  const std::vector<Id> ids = added_ids();
  if (to == 0) {
    EXPECT_EQ(index.remove(context, ids), added_rows);
  }
  if (to == 1) index.add(context, base().slice(base_rows, added_rows), ids);
  if (to == 2) index.update(context, ids, base().slice(base_rows + added_rows, added_rows));
}

// Everything that a reader can ask, as numbers. Searches are exact: which edges there are must not matter.
using Answer = std::vector<double>;
using Ask = std::function<Answer(const Context&, const GraphIndex&)>;

Answer flattened(const Neighbors& found) {
  Answer all;
  for (std::size_t query = 0; query < found.ids.rows(); ++query) {
    for (const Id id : found.ids.row(query)) all.push_back(static_cast<double>(id));
    all.insert(all.end(), found.distances.row(query).begin(), found.distances.row(query).end());
  }
  return all;
}

std::vector<Ask> questions() {
  std::vector<Id> odd = ids_from(1, base_rows / 2, 2);
  for (const Id id : added_ids()) odd.push_back(id);
  std::vector<std::size_t> offsets = {0};
  std::vector<Id> denied;
  for (std::size_t query = 0; query < queries().rows(); ++query) {
    for (Id i = 0; i < 20; ++i) denied.push_back(first_added + static_cast<Id>(query) + i);
    offsets.push_back(denied.size());
  }
  const auto searches = [](const Filter& filter) {
    return [filter](const Context& context, const GraphIndex& index) {
      return flattened(
          index.search(context, queries(), k, {.beam = base_rows + added_rows, .filter = filter}));
    };
  };
  return {
      searches({}),
      searches(Filter::allow(odd)),
      searches(Filter::deny_per_query(offsets, denied)),
      [](const Context& context, const GraphIndex& index) {
        const RangeNeighbors found = index.range_search(context, queries(), 5.0F, {.beam = 700});
        return Answer(found.ids.begin(), found.ids.end());
      },
      [](const Context&, const GraphIndex& index) {
        const std::vector<Id> ids = index.ids();
        return Answer(ids.begin(), ids.end());
      },
      [searches](const Context& context, const GraphIndex& index) {
        const testing_io::TemporaryFolder folder;
        save(index, folder / "index.nw");
        return searches({})(context, load_graph_index(context, folder / "index.nw"));
      },
  };
}

TEST(GraphUpdateThreads, ReadersSeeOneWholeState) {
  GraphIndex index = built();
  const std::vector<Ask> asks = questions();
  std::vector<std::array<Answer, states>> expected(asks.size());
  for (std::size_t state = 0; state < states; ++state) {
    if (state != 0) change(support::one_thread(), index, state);
    for (std::size_t i = 0; i < asks.size(); ++i) expected[i][state] = asks[i](support::one_thread(), index);
  }
  change(support::one_thread(), index, 0);
  for (const auto& answers : expected) {
    ASSERT_NE(answers[0], answers[1]);
  }

  std::atomic<bool> stop = false;
  std::array<std::atomic<int>, states> seen = {};
  std::vector<std::thread> readers;
  for (std::size_t reader = 0; reader < 3; ++reader)
    readers.emplace_back([&, reader] {
      const Context own = Context::cpu({.threads = 2});
      for (std::size_t number = reader; !stop; ++number) {
        const std::size_t i = number % asks.size();
        const Answer found = asks[i](own, index);
        const auto state = std::ranges::find(expected[i], found) - expected[i].begin();
        EXPECT_LT(static_cast<std::size_t>(state), states) << "a mixture of states, question " << i;
        if (static_cast<std::size_t>(state) < states) ++seen[static_cast<std::size_t>(state)];
        EXPECT_TRUE(index.size() == base_rows || index.size() == base_rows + added_rows);
      }
    });
  const Context writer = Context::cpu({.threads = 2});
  const auto all_seen = [&] {
    return std::ranges::all_of(seen, [](const auto& count) { return count >= 5; });
  };
  for (std::size_t round = 0; round < 500 && (round < 12 || !all_seen()); ++round) {
    for (std::size_t state = 1; state <= states; ++state) change(writer, index, state % states);
    if (round % 3 == 1) index.compact(writer);
    if (round % 3 == 2) index.calibrate(writer, {.sample = 5});
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_TRUE(all_seen());
  EXPECT_EQ(index.size(), base_rows);
}

TEST(GraphUpdateThreads, ChangesOfSeveralThreadsAreAllThere) {
  GraphIndex index = built();
  std::vector<std::thread> writers;
  for (std::size_t writer = 0; writer < 3; ++writer)
    writers.emplace_back([&, writer] {
      const Context own = Context::cpu({.threads = 1});
      for (std::size_t row = 0; row < added_rows; ++row) {
        const Id id = first_added + static_cast<Id>(writer * added_rows + row);
        index.add(own, base().slice(base_rows + row, 1), std::array{id});
        if (row % 2 == 0) {
          EXPECT_EQ(index.remove(own, std::array{id}), 1U);
        }
      }
    });
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(index.size(), base_rows + 3 * added_rows / 2);
  for (std::size_t i = 0; i < 3 * added_rows; ++i)
    EXPECT_EQ(index.contains(first_added + static_cast<Id>(i)), i % 2 != 0);
}

}  // namespace
}  // namespace nearwise
