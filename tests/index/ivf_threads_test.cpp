// Searches while other threads change the index: each of them sees one whole state.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "io/temporary_folder.h"
#include "nearwise/error.h"
#include "nearwise/filter.h"
#include "nearwise/ivf.h"
#include "support/ivf_cases.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::Problem;

constexpr std::size_t base_rows = 600;
constexpr std::size_t added_rows = 60;
constexpr std::size_t list_count = 6;
constexpr std::size_t k = 8;
constexpr Id first_added = 10'000;

// Base, then added vectors, then those that replace them; queries near all of them.
const Problem& problem() {
  static const Problem made = support::clustered(base_rows + 2 * added_rows, 24, 7, 17);
  return made;
}

RowsView base() { return problem().base; }
RowsView queries() { return problem().queries; }

Ivf built(std::size_t kind) {
  const std::array<Encoding, 2> encodings = {Encoding(Flat{}), Encoding(Pq{.code_bytes = 3})};
  return Ivf::build(support::one_thread(), base().slice(0, base_rows),
                    {.lists = list_count, .encoding = encodings[kind]});
}

std::vector<Id> ids_from(Id first, std::size_t count) {
  std::vector<Id> ids(count);
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

std::vector<Id> added_ids() { return ids_from(first_added, added_rows); }

// The states that the index passes through, one call after the other.
constexpr std::size_t states = 3;
void change(const Context& context, Ivf& index, std::size_t to) {
  const std::vector<Id> ids = added_ids();
  if (to == 0) {
    EXPECT_EQ(index.remove(context, ids), added_rows);
  }
  if (to == 1) index.add(context, base().slice(base_rows, added_rows), ids);
  if (to == 2) index.update(context, ids, base().slice(base_rows + added_rows, added_rows));
}

// Everything that a reader can ask, as numbers.
using Answer = std::vector<double>;
using Ask = std::function<Answer(const Context&, const Ivf&)>;

Answer flattened(const Neighbors& found) {
  Answer all;
  for (std::size_t query = 0; query < found.ids.rows(); ++query) {
    for (const Id id : found.ids.row(query)) all.push_back(static_cast<double>(id));
    all.insert(all.end(), found.distances.row(query).begin(), found.distances.row(query).end());
  }
  return all;
}

std::vector<Ask> questions() {
  std::vector<Id> odd;
  for (Id id = 1; id < static_cast<Id>(base_rows); id += 2) odd.push_back(id);
  for (const Id id : added_ids()) odd.push_back(id);
  std::vector<std::size_t> offsets = {0};
  std::vector<Id> denied;
  for (std::size_t query = 0; query < queries().rows(); ++query) {
    for (Id i = 0; i < 20; ++i) denied.push_back(first_added + static_cast<Id>(query) + i);
    offsets.push_back(denied.size());
  }
  // Calibration, which goes on meanwhile, must not matter.
  const auto searches = [](IvfSearchOptions options) {
    options.candidates = 50;
    return [options](const Context& context, const Ivf& index) {
      return flattened(index.search(context, queries(), k, options));
    };
  };
  return {
      searches({.probes = list_count}),
      searches({.probes = list_count, .codes_only = true}),
      searches({.filter = Filter::allow(odd), .scanned = base_rows}),
      searches({.probes = list_count, .filter = Filter::allow(odd)}),
      searches({.probes = list_count, .filter = Filter::deny_per_query(offsets, denied)}),
      [](const Context& context, const Ivf& index) {
        const RangeNeighbors found = index.range_search(context, queries(), 1e6F, {.probes = list_count});
        return Answer(found.ids.begin(), found.ids.end());
      },
      [](const Context&, const Ivf& index) {
        const std::vector<Id> ids = index.ids();
        return Answer(ids.begin(), ids.end());
      },
      [searches](const Context& context, const Ivf& index) {
        const testing_io::TemporaryFolder folder;
        save(index, folder / "index.nw");
        return searches({.probes = list_count})(context, load_ivf(context, folder / "index.nw"));
      },
  };
}

class IvfThreads : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Kinds, IvfThreads, testing::Values(0, 1),
                         [](const auto& tested) { return std::string(tested.param == 0 ? "flat" : "pq"); });

TEST_P(IvfThreads, ReadersSeeOneWholeState) {
  Ivf index = built(GetParam());
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
      }
    });
  const Context writer = Context::cpu({.threads = 2});
  const auto all_seen = [&] {
    return std::ranges::all_of(seen, [](const auto& count) { return count >= 5; });
  };
  for (std::size_t round = 0; round < 2000 && (round < 30 || !all_seen()); ++round) {
    for (std::size_t state = 1; state <= states; ++state) change(writer, index, state % states);
    index.compact();
    index.calibrate(writer, {.queries = 5});
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_TRUE(all_seen());
  EXPECT_EQ(index.size(), base_rows);
}

TEST_P(IvfThreads, ChangesOfSeveralThreadsAreAllThere) {
  Ivf index = built(GetParam());
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

TEST_P(IvfThreads, TwoIndexesAreMergedIntoEachOther) {
  const Context own = Context::cpu({.threads = 1});
  const Ivf made = built(GetParam());
  for (int round = 0; round < 20; ++round) {
    Ivf left = made.empty_copy();
    Ivf right = made.empty_copy();
    left.add(own, base().slice(0, 50));
    right.add(own, base().slice(0, 50), ids_from(100, 50));
    const auto merge = [&](Ivf& to, const Ivf& from) {
      try {
        to.merge(own, from);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument);  // the first to merge has all ids
      }
    };
    std::thread other([&] { merge(left, right); });
    merge(right, left);
    other.join();
    EXPECT_EQ(std::min(left.size(), right.size()), 50U);
    EXPECT_EQ(std::max(left.size(), right.size()), 100U);
  }
}

}  // namespace
}  // namespace nearwise
