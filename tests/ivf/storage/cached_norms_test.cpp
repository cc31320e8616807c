// Numbers of rows that an index keeps between searches: answers do not depend on them, and memory limits
// hold.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "io/temporary_folder.h"
#include "nearwise/ivf.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::as_expected;
using support::Problem;
using support::same;

const Context& one_thread() {
  static const Context context = Context::cpu({.threads = 1, .seed = 5});
  return context;
}

const Problem& problem() {
  static const Problem made = support::make_problem({.kind = support::Kind::normal,
                                                     .rows = 900,
                                                     .queries = 4,
                                                     .dim = 12,
                                                     .base_layout = support::Layout::dense,
                                                     .seed = 31});
  return made;
}

class CachedNorms : public testing::TestWithParam<Metric> {};
INSTANTIATE_TEST_SUITE_P(Metric, CachedNorms, testing::ValuesIn(support::every_metric), support::metric_name);

// Would catch: terms of rows that are no longer there, or no longer in their place.
TEST_P(CachedNorms, AreThoseOfTheRowsThatThereAre) {
  const testing_io::TemporaryFolder folder;
  const RowsView base = problem().base;
  const RowsView query = RowsView(problem().queries).slice(0, 1);
  Ivf index =
      Ivf::train(one_thread(), base, {.metric = GetParam(), .lists = 4, .encoding = Pq{.code_bytes = 3}});
  const auto check = [&](const char* what) {
    // One that nobody has searched in, and many queries at once, which pack lists.
    save(index, folder / "index.nw");
    const Ivf fresh = load_ivf(one_thread(), folder / "index.nw");
    for (const RowsView& queries : {query, RowsView(problem().queries), base.slice(0, 200)})
      EXPECT_TRUE(
          same(as_expected(fresh.search(one_thread(), queries, 20, {.probes = 3, .codes_only = true})),
               index.search(one_thread(), queries, 20, {.probes = 3, .codes_only = true})))
          << what << ", " << queries.rows();
  };
  index.add(one_thread(), base.slice(0, 500));
  check("added");
  index.add(one_thread(), base.slice(500, 100));
  check("added again");
  std::vector<Id> gone;
  for (Id id = 0; id < 300; id += 2) gone.push_back(id);
  index.remove(one_thread(), gone);
  check("removed");
  Ivf other = index.empty_copy();
  std::vector<Id> more(300);
  std::iota(more.begin(), more.end(), 600);
  other.add(one_thread(), base.slice(600, 300), more);
  other.search(one_thread(), query, 20, {.probes = 3});
  index.merge(one_thread(), other);
  check("merged");
}

TEST_P(CachedNorms, TakeNoMoreThanHalfOfALimit) {
  const testing_io::TemporaryFolder folder;
  const RowsView base = problem().base;
  Ivf index =
      Ivf::train(one_thread(), base, {.metric = GetParam(), .lists = 4, .encoding = Pq{.code_bytes = 3}});
  index.add(one_thread(), base);
  save(index, folder / "index.nw");
  const oracle::Answer expected =
      as_expected(index.search(one_thread(), problem().queries, 20, {.probes = 3}));
  struct Used {
    std::uint64_t before;
    std::uint64_t after;
  };
  const auto used_with = [&](std::uint64_t limit) -> Used {
    const Context context = Context::cpu({.threads = 1, .memory_limit = limit});
    const Ivf loaded = load_ivf(context, folder / "index.nw");
    const std::uint64_t before = context.memory_used();
    EXPECT_TRUE(same(expected, loaded.search(one_thread(), problem().queries, 20, {.probes = 3})));
    const std::uint64_t after = context.memory_used();
    // Searching again takes no more.
    EXPECT_TRUE(same(expected, loaded.search(one_thread(), problem().queries, 20, {.probes = 3})));
    EXPECT_EQ(context.memory_used(), after);
    return {before, after};
  };
  const Used plenty = used_with(std::uint64_t{1} << 30);
  if (GetParam() == Metric::inner_product)
    EXPECT_EQ(plenty.after, plenty.before);
  else
    EXPECT_GE(plenty.after, plenty.before + 900 * sizeof(float));
  const Used little = used_with(2 * plenty.before + 2 * 900 * sizeof(float));
  EXPECT_EQ(little.before, plenty.before);
  EXPECT_EQ(little.after, little.before);
}

}  // namespace
}  // namespace nearwise
