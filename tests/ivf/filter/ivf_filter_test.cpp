// Inverted files under a filter.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <tuple>
#include <vector>

#include "core/filter.h"
#include "ivf/filter/filter_plan.h"
#include "nearwise/exact.h"
#include "nearwise/ivf.h"
#include "support/error_of.h"
#include "support/filter_cases.h"
#include "support/ivf_cases.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::every_instruction_set;
using support::FilterCase;
using support::FilterKind;
using support::Problem;
using support::same;

constexpr std::size_t base_rows = 900;
constexpr std::size_t query_count = 30;
constexpr std::size_t list_count = 12;

const Problem& problem() {
  static const Problem made = support::clustered(base_rows, query_count, 9, 31);
  return made;
}

const Encoding& encoding_of(std::size_t kind) {
  static const std::array<Encoding, 3> encodings = {Encoding(Flat{}), Encoding(Pq{.code_bytes = 3}),
                                                    Encoding(Lsq{.code_bytes = 2, .rounds = 1})};
  return encodings[kind];
}

class IvfFilter : public testing::TestWithParam<std::tuple<std::size_t, Metric>> {
 protected:
  Metric metric() const { return std::get<1>(GetParam()); }
  Ivf built(VectorStorage vectors = VectorStorage::keep) const {
    return Ivf::build(support::one_thread(), problem().base,
                      {.metric = metric(),
                       .lists = list_count,
                       .encoding = encoding_of(std::get<0>(GetParam())),
                       .vectors = vectors});
  }
};
std::string kind_name(const testing::TestParamInfo<std::tuple<std::size_t, Metric>>& tested) {
  constexpr std::array<const char*, 3> names = {"flat", "pq", "lsq"};
  return names[std::get<0>(tested.param)] + std::string("_") + std::string(name(std::get<1>(tested.param)));
}
INSTANTIATE_TEST_SUITE_P(Kinds, IvfFilter,
                         testing::Combine(testing::Values(0, 1, 2),
                                          testing::Values(Metric::sqeuclidean, Metric::inner_product,
                                                          Metric::cosine)),
                         kind_name);

// The search of everything, without what the filter denies.
oracle::Answer kept_of(const Neighbors& all, std::size_t k, Metric metric, const support::Allows& allows) {
  oracle::Answer answer{all.ids.rows(), k, {}, {}};
  for (std::size_t query = 0; query < all.ids.rows(); ++query) {
    std::size_t rank = 0;
    for (std::size_t i = 0; i < all.ids.cols() && rank < k; ++i) {
      if (all.ids(query, i) == no_id || !allows(query, all.ids(query, i))) continue;
      answer.ids.push_back(all.ids(query, i));
      answer.distances.push_back(all.distances(query, i));
      ++rank;
    }
    for (; rank < k; ++rank) {
      answer.ids.push_back(no_id);
      answer.distances.push_back(oracle::worst_value(metric));
    }
  }
  return answer;
}

// With all lists, the codes decide as they do without a filter.
TEST_P(IvfFilter, OfCodesLeavesOutWhatIsDenied) {
  const Ivf index = built();
  for (const std::size_t queries : {1UL, query_count}) {
    const RowsView some = RowsView(problem().queries).slice(0, queries);
    const IvfSearchOptions all = {.probes = list_count, .codes_only = true};
    const Neighbors everything = index.search(support::one_thread(), some, base_rows, all);
    for (const FilterKind kind : support::every_filter_kind) {
      if (kind == FilterKind::allow_per_query) continue;  // compared by vectors
      for (const double density : {0.0, 0.01, 0.3, 1.0}) {
        const FilterCase filter = make_filter(kind, base_rows, queries, density, 12);
        const oracle::Answer expected = kept_of(everything, 7, metric(), filter.allows);
        for (const Context& context : every_instruction_set())
          EXPECT_TRUE(same(expected,
                           index.search(context, some, 7,
                                        {.probes = list_count, .codes_only = true, .filter = filter.filter})))
              << name(kind) << " " << density << " at " << context.isa();
      }
    }
  }
}

// As many candidates as vectors: re-ranking finds the true neighbours among those allowed.
TEST_P(IvfFilter, FindsTheAllowedNeighbours) {
  const Ivf index = built();
  for (const FilterKind kind : support::every_filter_kind)
    for (const double density : {0.0, 0.004, 0.3, 0.9, 1.0}) {
      const FilterCase filter = make_filter(kind, base_rows, query_count, density, 13);
      const oracle::Answer expected =
          support::filtered_answer(problem().queries, problem().base, 8, metric(), filter.allows);
      std::vector<IvfSearchOptions> ways = {
          {.probes = list_count, .candidates = base_rows, .filter = filter.filter}};
      if (FilterInternals::is_shared(filter.filter))
        ways.push_back({.candidates = base_rows, .filter = filter.filter, .scanned = base_rows});
      for (const IvfSearchOptions& options : ways)
        for (const Context& context : every_instruction_set())
          EXPECT_TRUE(same(expected, index.search(context, problem().queries, 8, options)))
              << name(kind) << " " << density << " at " << context.isa();
    }
}

// The index without the denied vectors answers the same with the same lists.
TEST_P(IvfFilter, EqualsAnIndexOfTheAllowedVectors) {
  const FilterCase filter = make_filter(FilterKind::mask, base_rows, query_count, 0.5, 14);
  const Ivf index = built();
  Ivf less = built();
  std::vector<Id> denied;
  for (Id id = 0; id < static_cast<Id>(base_rows); ++id)
    if (!filter.allows(0, id)) denied.push_back(id);
  less.remove(support::one_thread(), denied);
  for (std::size_t list = 0; list < list_count; ++list) ASSERT_NE(less.list_size(list), 0U);
  for (const std::size_t queries : {1UL, query_count})
    for (const Context& context : every_instruction_set()) {
      const RowsView some = RowsView(problem().queries).slice(0, queries);
      const oracle::Answer expected =
          support::as_expected(less.search(context, some, 6, {.probes = 3, .candidates = 20}));
      EXPECT_TRUE(same(expected, index.search(context, some, 6,
                                              {.probes = 3, .candidates = 20, .filter = filter.filter})));
    }
}

TEST_P(IvfFilter, FollowsChangesOfTheIndex) {
  Ivf index = built();
  const Context& context = support::one_thread();
  std::vector<std::uint8_t> mask(base_rows + 5, 0);
  for (const std::size_t id : {3UL, 4UL, base_rows, base_rows + 1}) mask[id] = 1;
  const Filter filter = Filter::mask(mask);
  const auto found = [&] {
    std::vector<Id> ids;
    const Neighbors answer =
        index.search(context, RowsView(problem().queries).slice(0, 1), 5, {.filter = filter});
    for (const Id id : answer.ids.row(0))
      if (id != no_id) ids.push_back(id);
    std::ranges::sort(ids);
    return ids;
  };
  EXPECT_EQ(found(), (std::vector<Id>{3, 4}));
  index.add(context, RowsView(problem().base).slice(0, 2));
  EXPECT_EQ(found(), (std::vector<Id>{3, 4, base_rows, base_rows + 1}));
  index.remove(context, std::vector<Id>{3, static_cast<Id>(base_rows)});
  EXPECT_EQ(found(), (std::vector<Id>{4, base_rows + 1}));
}

// Few excluded ids are looked up in their lists, many in a table that changes drop.
TEST_P(IvfFilter, ExcludesFollowChangesOfTheIndex) {
  const Context& context = support::one_thread();
  Ivf index = built();
  const IvfSearchOptions all = {.probes = list_count, .codes_only = true};
  const auto expect_excluded = [&](std::size_t each, const char* when) {
    const Neighbors everything = index.search(context, problem().queries, index.size(), all);
    std::vector<std::size_t> offsets = {0};
    std::vector<Id> nearest;
    for (std::size_t query = 0; query < query_count; ++query) {
      for (std::size_t i = 0; i < each; ++i) nearest.push_back(everything.ids(query, i));
      nearest.push_back(Id{1} << 50);  // the index does not hold it
      offsets.push_back(nearest.size());
    }
    IvfSearchOptions options = all;
    options.filter = Filter::deny_per_query(offsets, nearest);
    for (const std::size_t queries : {query_count, 1UL}) {
      const oracle::Answer expected = kept_of(everything, 5, metric(), [&](std::size_t query, Id id) {
        return options.filter.allows(id, query);
      });
      IvfSearchOptions some = options;
      some.filter = options.filter.from_query(0, queries);
      const Neighbors found = index.search(context, RowsView(problem().queries).slice(0, queries), 5, some);
      for (std::size_t i = 0; i < queries * 5; ++i)
        ASSERT_EQ(found.ids.data()[i], expected.ids[i]) << when << ", " << queries << " queries";
    }
  };
  for (const std::size_t each : {1UL, 40UL}) {
    expect_excluded(each, "at first");
    index.remove(context, std::vector<Id>{3, 100, 400});
    expect_excluded(each, "after a removal");
    index.add(context, RowsView(problem().base).slice(0, 7),
              std::vector<Id>{3, 100, 400, 901, 902, 903, 904});
    expect_excluded(each, "after an addition");
    index.update(context, std::vector<Id>{901, 902}, RowsView(problem().base).slice(20, 2));
    expect_excluded(each, "after an update");
    index.remove(context, std::vector<Id>{901, 902, 903, 904});
    index.compact();
    expect_excluded(each, "after compact");
  }
}

// Excluded ids of single queries cost no recall, wherever they are: the neighbours behind them are found.
class IvfExcludes : public testing::TestWithParam<std::size_t> {
 protected:
  static constexpr std::size_t rows = 12'000;
  static constexpr std::size_t count = 100;
  static constexpr std::size_t k = 10;

  static const Problem& large() {
    static const Problem made = support::make_problem(
        {.kind = support::Kind::normal, .rows = rows, .queries = count, .dim = 12, .seed = 71});
    return made;
  }
  Ivf built() const {
    return Ivf::build(support::one_thread(), large().base,
                      {.lists = 150, .encoding = encoding_of(GetParam())},
                      CalibrationOptions{.target_recall = 0.9});
  }
  static Filter excludes(const Neighbors& found, std::size_t first, std::size_t each) {
    std::vector<std::size_t> offsets = {0};
    std::vector<Id> ids;
    for (std::size_t query = 0; query < count; ++query) {
      const std::span<const Id> row = found.ids.row(query).subspan(first, each);
      ids.insert(ids.end(), row.begin(), row.end());
      offsets.push_back(ids.size());
    }
    return Filter::deny_per_query(offsets, ids);
  }
};
INSTANTIATE_TEST_SUITE_P(Kinds, IvfExcludes, testing::Values(0, 1, 2), [](const auto& tested) {
  return std::string(std::array{"flat", "pq", "lsq"}[tested.param]);
});

TEST_P(IvfExcludes, KeepTheRecall) {
  const Ivf index = built();
  const Neighbors all = knn(support::one_thread(), large().queries, large().base, rows);
  const auto recall = [&](const Neighbors& found, std::size_t first) {
    std::size_t hits = 0;
    for (std::size_t query = 0; query < count; ++query)
      for (const Id id : found.ids.row(query))
        hits += std::ranges::count(all.ids.row(query).subspan(first, k), id);
    return static_cast<double>(hits) / static_cast<double>(count * k);
  };
  const Context& context = support::one_thread();
  for (const std::size_t each : {1UL, 5UL, 6UL, 40UL, 200UL}) {
    const Filter filter = excludes(all, 0, each);
    const Neighbors found = index.search(context, large().queries, k, {.filter = filter});
    EXPECT_GE(recall(found, each), 0.89) << each << " excluded";  // 0.9, and the error of 1000 neighbours
    // Single queries, and a mask in addition.
    for (const std::size_t query : {3UL, 50UL}) {
      const Neighbors one = index.search(context, RowsView(large().queries).slice(query, 1), k,
                                         {.filter = filter.from_query(query, 1)});
      EXPECT_TRUE(std::ranges::equal(one.ids.row(0), found.ids.row(query)));
    }
    std::vector<std::uint8_t> mask(rows, 1);
    mask[0] = 0;
    const Neighbors masked = index.search(context, large().queries, k,
                                          {.filter = Filter::mask(mask) & filter, .scanned = rows / 10});
    for (std::size_t query = 0; query < count; ++query)
      for (const Id id : masked.ids.row(query))
        EXPECT_TRUE(id != no_id && id != 0 && filter.allows(id, query));
  }
  // What the caller has chosen stays.
  const Filter filter = excludes(all, 0, 40);
  const Neighbors fixed =
      index.search(context, large().queries, k, {.probes = 1, .candidates = k, .filter = filter});
  EXPECT_LT(recall(fixed, 40), 0.6);
}

TEST_P(IvfExcludes, FarAwayChangeNothing) {
  const Ivf index = built();
  const Neighbors all = knn(support::one_thread(), large().queries, large().base, rows);
  const Filter filter = excludes(all, rows - 300, 300);
  for (const std::size_t queries : {1UL, count})
    EXPECT_TRUE(same(support::as_expected(
                         index.search(support::one_thread(), RowsView(large().queries).slice(0, queries), k)),
                     index.search(support::one_thread(), RowsView(large().queries).slice(0, queries), k,
                                  {.filter = filter.from_query(0, queries)})));
}

TEST_P(IvfFilter, WithoutVectorsTheCodesDecide) {
  if (std::get<0>(GetParam()) == 0) GTEST_SKIP() << "flat lists are the vectors";
  const Ivf index = built(VectorStorage::none);
  const FilterCase filter = make_filter(FilterKind::mask, base_rows, query_count, 0.05, 15);
  const Context& context = support::one_thread();
  const IvfSearchPlan plan = index.explain(context, query_count, 4, {.filter = filter.filter});
  EXPECT_FALSE(plan.exact);
  const Neighbors all = index.search(context, problem().queries, base_rows, {.probes = list_count});
  EXPECT_TRUE(
      same(kept_of(all, 4, metric(), filter.allows),
           index.search(context, problem().queries, 4, {.filter = filter.filter, .scanned = base_rows})));
}

// A query whose own lists hold no allowed vector goes on to those that do.
TEST(IvfFilterProbes, GoOnUntilEnoughIsScanned) {
  const Context& context = support::one_thread();
  const Ivf index = Ivf::build(context, problem().base, {.lists = list_count}, std::nullopt);
  const Neighbors near = index.search(context, problem().queries, base_rows, {.probes = 2});
  for (std::size_t query = 0; query < query_count; ++query) {
    std::vector<Id> ids;
    for (const Id id : near.ids.row(query))
      if (id != no_id) ids.push_back(id);
    const Filter far = Filter::deny(ids);
    const Neighbors found = index.search(context, RowsView(problem().queries).slice(query, 1), 10,
                                         {.filter = far, .scanned = 40});
    for (const Id id : found.ids.row(0)) EXPECT_TRUE(id != no_id && far.allows(id));
  }
}

TEST(IvfFilterIds, MayBeSparse) {
  const Context& context = support::one_thread();
  Ivf index = Ivf::train(context, problem().base, {.lists = list_count, .encoding = Pq{.code_bytes = 3}});
  std::vector<Id> ids(base_rows);
  for (std::size_t i = 0; i < base_rows; ++i) ids[i] = static_cast<Id>(i) << 40;
  index.add(context, problem().base, ids);
  const std::vector<Id> allowed = {ids[5], ids[17], ids[400], Id{77}};
  const Filter filter = Filter::allow(allowed);
  EXPECT_EQ(index.explain(context, 1, 5, {.filter = filter}).allowed, 3U);
  const oracle::Answer expected =
      support::filtered_answer(problem().queries, problem().base, 5, Metric::sqeuclidean,
                               [](std::size_t, Id id) { return id == 5 || id == 17 || id == 400; });
  oracle::Answer moved = expected;
  for (Id& id : moved.ids)
    if (id != no_id) id <<= 40;
  EXPECT_TRUE(same(moved, index.search(context, problem().queries, 5, {.filter = filter})));
}

TEST(IvfFilterMemory, KeepsALimit) {
  const Problem large = support::clustered(20'000, 50, 16, 41);
  const Ivf index = Ivf::build(support::one_thread(), large.base,
                               {.lists = 40, .encoding = Pq{.code_bytes = 4}}, std::nullopt);
  const FilterCase filter = make_filter(FilterKind::mask, 20'000, 50, 0.5, 41);
  const oracle::Answer exact =
      support::filtered_answer(large.queries, large.base, 5, Metric::sqeuclidean, filter.allows);
  const Context context = Context::cpu({.threads = 2, .memory_limit = 2 << 20});
  const FilterCase excluded = make_filter(FilterKind::deny_per_query, 20'000, 50, 0.98, 41);
  const IvfSearchOptions without = {.probes = 40, .filter = excluded.filter};
  EXPECT_TRUE(same(support::as_expected(index.search(support::one_thread(), large.queries, 5, without)),
                   index.search(context, large.queries, 5, without)));
  EXPECT_TRUE(
      same(exact, index.search(context, large.queries, 5, {.filter = filter.filter, .scanned = 20'000})));
  EXPECT_EQ(index.search(context, large.queries, 5, {.filter = filter.filter, .scanned = 1000}).ids.rows(),
            50U);
  EXPECT_EQ(context.memory_used(), 0U);
}

TEST(IvfFilterErrors, NameTheNumberOfLists) {
  const Context& context = support::one_thread();
  const Ivf index = Ivf::build(context, problem().base, {.lists = list_count}, std::nullopt);
  const Filter two = Filter::deny_per_query(std::vector<std::size_t>{0, 1, 2}, std::vector<Id>{1, 2});
  EXPECT_EQ(support::error_of([&] { index.search(context, problem().queries, 5, {.filter = two}); }).code(),
            ErrorCode::invalid_argument);
}

TEST(FilterPlan, ComparesTheCosts) {
  const ivf::FilteredShape many = {.queries = 10'000,
                                   .allowed = 500'000,
                                   .lists = 1024,
                                   .scanned = 22'000,
                                   .candidates = 100,
                                   .dim = 128,
                                   .vector_bytes = 512};
  EXPECT_FALSE(ivf::plan_filtered(many).exact);
  EXPECT_EQ(ivf::plan_filtered(many).probes, 46U);  // 22,000 of 488 in each list
  const auto changed = [&](auto change) {
    ivf::FilteredShape shape = many;
    change(shape);
    return ivf::plan_filtered(shape);
  };
  EXPECT_TRUE(changed([](auto& shape) { shape.allowed = 100'000; }).exact);
  EXPECT_FALSE(changed([](auto& shape) { shape.allowed = 100'000, shape.queries = 1; }).exact);
  EXPECT_TRUE(changed([](auto& shape) { shape.allowed = 1000, shape.queries = 1; }).exact);
  EXPECT_FALSE(changed([](auto& shape) { shape.allowed = 1000, shape.vector_bytes = 0; }).exact);
  EXPECT_FALSE(changed([](auto& shape) { shape.allowed = 1000, shape.has_fixed_probes = true; }).exact);
  EXPECT_EQ(changed([](auto& shape) { shape.allowed = 0, shape.lists = 0; }).probes, 0U);
  // Slower scans and fewer allowed vectors change the choice at most once.
  bool was_exact = true;
  for (std::size_t allowed = 100; allowed < 1'000'000; allowed *= 2) {
    const bool exact = changed([&](auto& shape) { shape.allowed = allowed; }).exact;
    EXPECT_TRUE(was_exact || !exact) << allowed;
    was_exact = exact;
  }
}

// So that answers are the same on another machine: exact search may find what lists do not.
TEST(FilterPlan, DependsOnTheSearchAlone) {
  const Problem large = support::clustered(20'000, 1, 16, 43);
  const Ivf index = Ivf::build(support::one_thread(), large.base,
                               {.lists = 40, .encoding = Pq{.code_bytes = 4}}, std::nullopt);
  std::vector<Context> contexts = every_instruction_set();
  contexts.push_back(Context::cpu({.threads = 3}));
  contexts.push_back(Context::cpu({.threads = 1, .memory_limit = 4 << 20}));
  std::size_t exact = 0;
  std::size_t by_lists = 0;
  for (const double share : {0.005, 0.1, 0.6}) {
    const FilterCase filter = make_filter(FilterKind::mask, 20'000, 1, share, 43);
    for (const std::size_t queries : {1UL, 10UL, 10'000UL}) {
      const IvfSearchPlan first = index.explain(contexts.front(), queries, 5, {.filter = filter.filter});
      (first.exact ? exact : by_lists) += 1;
      for (const Context& context : contexts) {
        const IvfSearchPlan plan = index.explain(context, queries, 5, {.filter = filter.filter});
        EXPECT_EQ(plan.exact, first.exact) << share << " for " << queries;
        EXPECT_EQ(plan.exact_cost, first.exact_cost);
        EXPECT_EQ(plan.lists_cost, first.lists_cost);
      }
    }
  }
  EXPECT_GT(exact, 0U);
  EXPECT_GT(by_lists, 0U);
}

}  // namespace
}  // namespace nearwise
