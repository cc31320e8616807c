// Searches while other threads change an index: each of them sees one whole state.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

#include "io/temporary_folder.h"
#include "nearwise/context.h"
#include "nearwise/filter.h"
#include "support/ivf_cases.h"
#include "support/knn_cases.h"

namespace nearwise::support {

inline std::vector<Id> ids_from(Id first, std::size_t count, Id step = 1) {
  std::vector<Id> ids(count);
  for (std::size_t i = 0; i < count; ++i) ids[i] = first + static_cast<Id>(i) * step;
  return ids;
}

// `Traits` has the type `Index` and says how one is loaded, maintained and searched in a range. Tests begin
// with an index of the first `base_rows`, and search it exactly: by all lists, or with the widest beam.
template <class Traits>
class ConcurrentChanges {
 public:
  using Index = typename Traits::Index;
  using SearchOptions = typename Index::SearchOptions;

  // Everything that a reader can ask, as numbers.
  using Answer = std::vector<double>;
  using Ask = std::function<Answer(const Context&, const Index&)>;

  static constexpr std::size_t base_rows = 600;
  static constexpr std::size_t added_rows = 60;
  static constexpr std::size_t all_rows = base_rows + 2 * added_rows;
  static constexpr Id first_added = 10'000;

  // `problem.base`: the base, then added vectors, then those that replace them; queries near all of them.
  explicit ConcurrentChanges(const Problem& problem) : rows_(problem.base), queries_(problem.queries) {}

  Ask search(const SearchOptions& options) const {
    return [options, queries = queries_](const Context& context, const Index& index) {
      const Neighbors found = index.search(context, queries, 8, options);
      Answer all;
      for (std::size_t query = 0; query < found.ids.rows(); ++query) {
        for (const Id id : found.ids.row(query)) all.push_back(static_cast<double>(id));
        all.insert(all.end(), found.distances.row(query).begin(), found.distances.row(query).end());
      }
      return all;
    };
  }

  // Half of the base and what is added.
  static Filter odd_ids() {
    std::vector<Id> odd = ids_from(1, base_rows / 2, 2);
    for (const Id id : added_ids()) odd.push_back(id);
    return Filter::allow(odd);
  }

  Filter denied_per_query() const {
    std::vector<std::size_t> offsets = {0};
    std::vector<Id> denied;
    for (std::size_t query = 0; query < queries_.rows(); ++query) {
      for (const Id id : ids_from(first_added + static_cast<Id>(query), 20)) denied.push_back(id);
      offsets.push_back(denied.size());
    }
    return Filter::deny_per_query(offsets, denied);
  }

  // What every index answers; `more` are questions of one kind of index.
  std::vector<Ask> questions(const SearchOptions& options, float radius, std::vector<Ask> more = {}) const {
    SearchOptions odd = options;
    odd.filter = odd_ids();
    SearchOptions denied = options;
    denied.filter = denied_per_query();
    more.push_back(search(options));
    more.push_back(search(odd));
    more.push_back(search(denied));
    more.push_back([options, radius, queries = queries_](const Context& context, const Index& index) {
      const RangeNeighbors found =
          index.range_search(context, queries, radius, Traits::range_options(options));
      return Answer(found.ids.begin(), found.ids.end());
    });
    more.push_back([](const Context&, const Index& index) {
      const std::vector<Id> ids = index.ids();
      return Answer(ids.begin(), ids.end());
    });
    more.push_back([ask = search(options)](const Context& context, const Index& index) {
      const testing_io::TemporaryFolder folder;
      save(index, folder / "index.nw");
      return ask(context, Traits::load(context, folder / "index.nw"));
    });
    return more;
  }

  void readers_see_one_whole_state(Index index, const std::vector<Ask>& asks, std::size_t rounds) const {
    std::vector<std::array<Answer, states>> expected(asks.size());
    for (std::size_t state = 0; state < states; ++state) {
      if (state != 0) change(one_thread(), index, state);
      for (std::size_t i = 0; i < asks.size(); ++i) expected[i][state] = asks[i](one_thread(), index);
    }
    change(one_thread(), index, 0);
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
          const auto state =
              static_cast<std::size_t>(std::ranges::find(expected[i], found) - expected[i].begin());
          EXPECT_LT(state, states) << "a mixture of states, question " << i;
          if (state < states) ++seen[state];
          EXPECT_TRUE(index.size() == base_rows || index.size() == base_rows + added_rows);
        }
      });
    const Context writer = Context::cpu({.threads = 2});
    const auto all_seen = [&] {
      return std::ranges::all_of(seen, [](const auto& count) { return count >= 5; });
    };
    // On a busy machine readers get their turn late.
    for (std::size_t round = 0; round < 60 * rounds && (round < rounds || !all_seen()); ++round) {
      for (std::size_t state = 1; state <= states; ++state) change(writer, index, state % states);
      Traits::maintain(writer, index, round);
    }
    stop = true;
    for (std::thread& reader : readers) reader.join();
    EXPECT_TRUE(all_seen());
    EXPECT_EQ(index.size(), base_rows);
  }

  void changes_of_several_threads_are_all_there(Index index) const {
    std::vector<std::thread> writers;
    for (std::size_t writer = 0; writer < 3; ++writer)
      writers.emplace_back([&, writer] {
        const Context own = Context::cpu({.threads = 1});
        for (std::size_t row = 0; row < added_rows; ++row) {
          const Id id = first_added + static_cast<Id>(writer * added_rows + row);
          index.add(own, rows_.slice(base_rows + row, 1), std::array{id});
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

 private:
  // The states that the index passes through, one call after the other.
  static constexpr std::size_t states = 3;
  void change(const Context& context, Index& index, std::size_t to) const {
    const std::vector<Id> ids = added_ids();
    if (to == 0) {
      EXPECT_EQ(index.remove(context, ids), added_rows);
    }
    if (to == 1) index.add(context, rows_.slice(base_rows, added_rows), ids);
    if (to == 2) index.update(context, ids, rows_.slice(base_rows + added_rows, added_rows));
  }

  static std::vector<Id> added_ids() { return ids_from(first_added, added_rows); }

  RowsView rows_;
  RowsView queries_;
};

}  // namespace nearwise::support
