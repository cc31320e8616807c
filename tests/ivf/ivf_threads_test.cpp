// Searches while other threads change the index: each of them sees one whole state.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <thread>

#include "nearwise/error.h"
#include "nearwise/ivf.h"
#include "support/concurrent_changes.h"
#include "support/ivf_cases.h"

namespace nearwise {
namespace {

struct IvfTraits {
  using Index = Ivf;

  static Ivf load(const Context& context, const std::filesystem::path& path) {
    return load_ivf(context, path);
  }
  static IvfRangeOptions range_options(const IvfSearchOptions& options) { return {.probes = options.probes}; }
  static void maintain(const Context& context, Ivf& index, std::size_t) {
    index.compact();
    index.calibrate(context, {.queries = 5});
  }
};

using Changes = support::ConcurrentChanges<IvfTraits>;

constexpr std::size_t list_count = 6;

const support::Problem& problem() {
  static const support::Problem made = support::clustered(Changes::all_rows, 24, 7, 17);
  return made;
}

RowsView base() { return problem().base; }

Ivf built(std::size_t kind) {
  const std::array<Encoding, 2> encodings = {Encoding(Flat{}), Encoding(Pq{.code_bytes = 3})};
  return Ivf::build(support::one_thread(), base().slice(0, Changes::base_rows),
                    {.lists = list_count, .encoding = encodings[kind]});
}

class IvfThreads : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Kinds, IvfThreads, testing::Values(0, 1),
                         [](const auto& tested) { return std::string(tested.param == 0 ? "flat" : "pq"); });

TEST_P(IvfThreads, ReadersSeeOneWholeState) {
  const Changes changes(problem());
  // Calibration, which goes on meanwhile, must not matter.
  const IvfSearchOptions all_lists = {.probes = list_count, .candidates = 50};
  IvfSearchOptions codes_only = all_lists;
  codes_only.codes_only = true;
  const IvfSearchOptions scanned = {
      .candidates = 50, .filter = Changes::odd_ids(), .scanned = Changes::base_rows};
  changes.readers_see_one_whole_state(
      built(GetParam()),
      changes.questions(all_lists, 1e6F, {changes.search(codes_only), changes.search(scanned)}), 30);
}

TEST_P(IvfThreads, ChangesOfSeveralThreadsAreAllThere) {
  Changes(problem()).changes_of_several_threads_are_all_there(built(GetParam()));
}

TEST_P(IvfThreads, TwoIndexesAreMergedIntoEachOther) {
  const Context own = Context::cpu({.threads = 1});
  const Ivf made = built(GetParam());
  for (int round = 0; round < 20; ++round) {
    Ivf left = made.empty_copy();
    Ivf right = made.empty_copy();
    left.add(own, base().slice(0, 50));
    right.add(own, base().slice(0, 50), support::ids_from(100, 50));
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
