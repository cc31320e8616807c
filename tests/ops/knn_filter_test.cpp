// Exact search under a filter equals a search of the allowed rows alone, bit for bit.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "nearwise/exact.h"
#include "ops/filter/filter_strategy.h"
#include "support/error_of.h"
#include "support/filter_cases.h"
#include "support/knn_cases.h"
#include "support/range_cases.h"

namespace nearwise {
namespace {

using support::every_instruction_set;
using support::FilterCase;
using support::FilterKind;
using support::Kind;
using support::Problem;
using support::same;

constexpr std::array densities = {0.0, 0.002, 0.1, 0.5, 0.97, 1.0};

struct FilteredProblem {
  Problem problem;
  Metric metric;
  std::size_t k;
  FilterCase filter;
  std::string what;
};

FilteredProblem generated(std::uint64_t seed) {
  const Random random = support::random_for(seed, support::Purpose::shapes);
  const auto pick = [&](std::uint64_t index, const auto& choices) {
    return choices[random.below(index, choices.size())];
  };
  const support::Recipe recipe = {
      .kind = pick(1, std::array{Kind::normal, Kind::integers, Kind::exact_duplicates, Kind::identical,
                                 Kind::huge, Kind::largest, Kind::near_duplicates}),
      .rows = pick(2, std::array<std::size_t, 6>{1, 17, 100, 333, 700, 1500}),
      .queries = pick(3, std::array<std::size_t, 4>{1, 7, 12, 70}),
      .dim = pick(4, std::array<std::size_t, 4>{1, 5, 16, 70}),
      .base_type = pick(5, support::every_type),
      .query_type = pick(6, std::array{true, true, false}) ? pick(5, support::every_type)
                                                           : pick(7, support::every_type),
      .seed = seed};
  const FilterKind kind = pick(8, support::every_filter_kind);
  const double density = pick(9, densities);
  FilteredProblem made = {.problem = support::make_problem(recipe),
                          .metric = pick(10, support::every_metric),
                          .k = pick(11, std::array<std::size_t, 4>{1, 3, 10, 90}),
                          .filter = make_filter(kind, recipe.rows, recipe.queries, density, seed),
                          .what = {}};
  made.what = fmt::format("{} filter {}, density {}", describe(support::KnnCase{recipe, made.metric, made.k}),
                          name(kind), density);
  return made;
}

TEST(KnnFilter, EqualsTheSearchOfAllowedRows) {
  constexpr std::uint64_t cases = 1000;
  support::case_count.add(cases);
  for (std::uint64_t seed = 70'000; seed < 70'000 + cases; ++seed) {
    const FilteredProblem given = generated(seed);
    SCOPED_TRACE(given.what);
    const RowsView queries = given.problem.queries;
    const RowsView base = given.problem.base;
    const oracle::Answer expected =
        support::filtered_answer(queries, base, given.k, given.metric, given.filter.allows);
    for (const Context& context : every_instruction_set()) {
      ASSERT_TRUE(
          same(expected,
               knn(context, queries, base, given.k,
                   {.metric = given.metric, .short_rows = ShortRows::pad, .filter = given.filter.filter})))
          << "at " << context.isa();
      const Exact exact = Exact::prepare(context, base, {.metric = given.metric});
      ASSERT_TRUE(same(expected, exact.search(context, queries, given.k,
                                              {.short_rows = ShortRows::pad, .filter = given.filter.filter})))
          << "prepared, at " << context.isa();
    }
  }
}

TEST(KnnFilter, RangeSearchToo) {
  for (std::uint64_t seed = 80'000; seed < 80'150; ++seed) {
    const FilteredProblem given = generated(seed);
    SCOPED_TRACE(given.what);
    const RowsView queries = given.problem.queries;
    const RowsView base = given.problem.base;
    // A distance that some rows have.
    const float radius =
        oracle::knn(queries.slice(0, 1), base, std::min<std::size_t>(base.rows(), 30), given.metric)
            .distances.back();
    const oracle::RangeAnswer expected =
        support::filtered_range(queries, base, radius, given.metric, given.filter.allows);
    for (const Context& context : every_instruction_set()) {
      ASSERT_TRUE(same(expected, range_search(context, queries, base, radius,
                                              {.metric = given.metric, .filter = given.filter.filter})))
          << "at " << context.isa();
      const Exact exact = Exact::prepare(context, base, {.metric = given.metric});
      ASSERT_TRUE(
          same(expected, exact.range_search(context, queries, radius, {.filter = given.filter.filter})))
          << "prepared, at " << context.isa();
    }
  }
}

// Enough queries and few enough allowed rows for a scan under the mask, in several blocks and threads.
TEST(KnnFilter, ScansUnderAMaskInBlocks) {
  for (const ElementType type : {ElementType::f32, ElementType::u8, ElementType::i8})
    for (const std::size_t threads : {1UL, 3UL}) {
      const Problem problem = support::make_problem({.kind = Kind::normal,
                                                     .rows = 20'000,
                                                     .queries = 40,
                                                     .dim = 8,
                                                     .base_type = type,
                                                     .query_type = type,
                                                     .seed = 4});
      const FilterCase filter = make_filter(FilterKind::mask, 20'000, 40, 0.98, 4);
      const oracle::Answer expected =
          support::filtered_answer(problem.queries, problem.base, 10, Metric::sqeuclidean, filter.allows);
      for (const std::string& isa : instruction_sets()) {
        const Context context = Context::cpu({.threads = static_cast<int>(threads), .isa = isa});
        const Exact exact = Exact::prepare(context, problem.base);
        EXPECT_TRUE(same(expected, exact.search(context, problem.queries, 10, {.filter = filter.filter})))
            << isa;
      }
    }
}

// The rows nearest to the queries are denied: scores of denied rows must not limit those of allowed ones.
TEST(KnnFilter, DeniedNeighboursDoNotHideOthers) {
  const Problem problem =
      support::make_problem({.kind = Kind::normal, .rows = 3000, .queries = 40, .dim = 12, .seed = 6});
  const oracle::Answer nearest = oracle::knn(problem.queries, problem.base, 500, Metric::sqeuclidean);
  std::vector<std::size_t> offsets = {0};
  for (std::size_t query = 0; query < 40; ++query) offsets.push_back(500 * (query + 1));
  const Filter denied = Filter::deny_per_query(offsets, nearest.ids);
  const Filter shared = Filter::deny(std::span(nearest.ids).first(500));
  for (const Filter& filter : {denied, shared}) {
    const oracle::Answer expected =
        support::filtered_answer(problem.queries, problem.base, 7, Metric::sqeuclidean,
                                 [&](std::size_t query, Id id) { return filter.allows(id, query); });
    for (const Context& context : every_instruction_set()) {
      EXPECT_TRUE(same(expected, knn(context, problem.queries, problem.base, 7, {.filter = filter})));
      EXPECT_TRUE(same(
          expected,
          Exact::prepare(context, problem.base).search(context, problem.queries, 7, {.filter = filter})));
    }
  }
}

TEST(KnnFilter, ExcludesTheRowItselfToo) {
  const Problem problem =
      support::make_problem({.kind = Kind::integers, .rows = 200, .queries = 1, .dim = 3, .seed = 7});
  for (const FilterKind kind : support::every_filter_kind) {
    const FilterCase filter = make_filter(kind, 200, 200, 0.3, 7);
    const oracle::Answer expected = support::filtered_answer(
        problem.base, problem.base, 5, Metric::sqeuclidean,
        [&](std::size_t query, Id id) { return static_cast<Id>(query) != id && filter.allows(query, id); });
    const Context context = Context::cpu({.threads = 2});
    EXPECT_TRUE(same(expected, knn(context, problem.base, problem.base, 5,
                                   {.exclude_self = true, .filter = filter.filter})));
    EXPECT_TRUE(same(expected, exact_knn_graph(context, problem.base, 5, {.filter = filter.filter})));
  }
}

TEST(KnnFilter, KeepsAMemoryLimit) {
  const Problem problem =
      support::make_problem({.kind = Kind::normal, .rows = 30'000, .queries = 50, .dim = 16, .seed = 8});
  const FilterCase filter = make_filter(FilterKind::mask, 30'000, 50, 0.7, 8);
  const oracle::Answer expected =
      support::filtered_answer(problem.queries, problem.base, 5, Metric::sqeuclidean, filter.allows);
  const Context context = Context::cpu({.threads = 2, .memory_limit = 1 << 20});
  EXPECT_TRUE(same(expected, knn(context, problem.queries, problem.base, 5, {.filter = filter.filter})));
  EXPECT_LE(context.memory_peak(), std::uint64_t{1} << 20);
  EXPECT_EQ(context.memory_used(), 0U);
}

TEST(KnnFilter, NamesBadRowsByTheirNumber) {
  support::Values values = support::generate(Kind::normal, 100, 4, 1);
  values(70, 2) = std::numeric_limits<double>::quiet_NaN();
  const support::Rows base(values, ElementType::f32);
  const support::Rows queries(support::generate(Kind::normal, 20, 4, 2), ElementType::f32);
  std::vector<std::uint8_t> mask(100, 1);
  mask[3] = 0;
  for (const Context& context : every_instruction_set())
    for (const std::size_t count : {1UL, 20UL}) {
      const RowsView some = queries.view().slice(0, count);
      const auto error =
          support::error_of([&] { knn(context, some, base, 5, {.filter = Filter::mask(mask)}); });
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_NE(std::string(error.what()).find("row 70 "), std::string::npos) << error.what();
      mask[70] = 0;  // denied rows are not looked at
      EXPECT_EQ(knn(context, some, base, 5, {.filter = Filter::mask(mask)}).ids.rows(), count);
      mask[70] = 1;
    }
}

TEST(KnnFilter, NeedsAListForEveryQuery) {
  const support::Rows rows(support::generate(Kind::normal, 10, 4, 2), ElementType::f32);
  const Filter two = Filter::deny_per_query(std::vector<std::size_t>{0, 1, 2}, std::vector<Id>{1, 2});
  const Context context = Context::cpu();
  for (const auto& error :
       {support::error_of([&] { knn(context, rows, rows, 2, {.filter = two}); }),
        support::error_of([&] { range_search(context, rows, rows, 2, {.filter = two}); })})
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
}

TEST(FilterStrategy, FollowsTheCosts) {
  const FilteredSearchShape shape = {.queries = 1000,
                                     .rows = 1'000'000,
                                     .allowed = 900'000,
                                     .row_bytes = 128,
                                     .pair_ns = 0.14,
                                     .can_mask = true};
  const auto with = [&](std::size_t queries, std::size_t allowed, bool can_mask, bool has_direct) {
    FilteredSearchShape changed = shape;
    changed.queries = queries;
    changed.allowed = allowed;
    changed.can_mask = can_mask;
    changed.has_direct = has_direct;
    return choose_filter_strategy(changed);
  };
  EXPECT_EQ(with(1, 900'000, true, true), FilterStrategy::direct);
  EXPECT_EQ(with(1, 900'000, true, false), FilterStrategy::mask);
  EXPECT_EQ(with(100, 900'000, true, true), FilterStrategy::mask);
  EXPECT_EQ(with(100, 900'000, false, true), FilterStrategy::gather);
  EXPECT_EQ(with(10'000, 500'000, true, true), FilterStrategy::gather);
  EXPECT_EQ(with(100, 1'000, true, true), FilterStrategy::gather);
}

}  // namespace
}  // namespace nearwise
