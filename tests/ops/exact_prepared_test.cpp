// A prepared base gives the answers of the functions without one, byte for byte.
//
// What these would catch: packed rows used for queries, an instruction set or a metric that they were not
// packed for; a block's rows under the numbers of another; a shift by another centre than the one of the
// blocks; memory that is not counted or not given back; searches that disturb each other.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "nearwise/error.h"
#include "nearwise/exact.h"
#include "support/cancelling.h"
#include "support/range_cases.h"

namespace nearwise {
namespace {

using support::every_instruction_set;
using support::Kind;
using support::Problem;
using support::Rows;
using support::same;

// The oracle's answers for a base and all its queries; those of the first few are a part of them.
struct Expected {
  Expected(RowsView all_queries, RowsView base, std::size_t neighbours, Metric metric)
      : queries(all_queries),
        k(neighbours),
        radius(support::radius_at_rank(queries, base, k, metric)),
        nearest(oracle::knn(queries, base, k, metric)),
        inside(oracle::range(queries, base, radius, metric)) {}

  oracle::Answer nearest_of_first(std::size_t count) const {
    const auto end = static_cast<std::ptrdiff_t>(count * k);
    return {count,
            k,
            {nearest.ids.begin(), nearest.ids.begin() + end},
            {nearest.distances.begin(), nearest.distances.begin() + end}};
  }
  oracle::RangeAnswer inside_of_first(std::size_t count) const {
    const auto end = static_cast<std::ptrdiff_t>(inside.offsets[count]);
    return {{inside.offsets.begin(), inside.offsets.begin() + static_cast<std::ptrdiff_t>(count) + 1},
            {inside.ids.begin(), inside.ids.begin() + end},
            {inside.distances.begin(), inside.distances.begin() + end}};
  }

  RowsView queries;
  std::size_t k;
  float radius;
  oracle::Answer nearest;
  oracle::RangeAnswer inside;
};

// All searches of a prepared base: few queries, which have a way of their own, more, and about a panel of
// them.
void expect_same_answers(const Context& context, const Exact& exact, const Expected& expected) {
  for (const std::size_t count : {1UL, 3UL, 6UL, 40UL}) {
    const RowsView part = expected.queries.slice(0, count);
    EXPECT_TRUE(same(expected.nearest_of_first(count), exact.search(context, part, expected.k)))
        << count << " queries at " << context.isa();
    EXPECT_TRUE(same(expected.inside_of_first(count), exact.range_search(context, part, expected.radius)))
        << count << " queries within " << expected.radius << " at " << context.isa();
  }
}

class ExactPrepared : public testing::TestWithParam<Metric> {};

INSTANTIATE_TEST_SUITE_P(Metric, ExactPrepared, testing::ValuesIn(support::every_metric),
                         support::metric_name);

TEST_P(ExactPrepared, EveryKindOfDataForEveryType) {
  std::uint64_t seed = 10'000;
  for (const Kind kind : support::every_kind)
    for (const ElementType type : support::every_type) {
      const std::size_t rows = 20 + ++seed * 17 % 150;
      const Problem problem = support::make_problem({.kind = kind,
                                                     .rows = rows,
                                                     .queries = 40,
                                                     .dim = 1 + seed * 11 % 70,
                                                     .base_type = type,
                                                     .query_type = type,
                                                     .seed = seed});
      SCOPED_TRACE(fmt::format("{} {}, {} rows, seed {}", name(kind), name(type), rows, seed));
      const Context& context = every_instruction_set()[seed % every_instruction_set().size()];
      const Expected expected(problem.queries, problem.base, 1 + seed % 15, GetParam());
      for (const Context& at : {context, every_instruction_set().front()})
        expect_same_answers(at, Exact::prepare(at, problem.base, {.metric = GetParam()}), expected);
      if (HasFailure()) return;
    }
}

// Queries of any type: of some the packed rows can be used, of the others the base is packed anew.
TEST_P(ExactPrepared, QueriesOfEveryTypeAtEveryInstructionSet) {
  const auto make = [](ElementType base_type, ElementType query_type) {
    return support::make_problem({.kind = Kind::near_duplicates,
                                  .rows = 210,
                                  .queries = 40,
                                  .dim = 36,
                                  .base_type = base_type,
                                  .query_type = query_type,
                                  .seed = 11'000});
  };
  for (const ElementType base_type : support::every_type) {
    const Problem kept = make(base_type, base_type);  // the rows must outlive what was prepared of them
    std::vector<Exact> prepared;
    for (const Context& context : every_instruction_set())
      prepared.push_back(Exact::prepare(context, kept.base, {.metric = GetParam()}));
    for (const ElementType query_type : support::every_type) {
      SCOPED_TRACE(fmt::format("{} against {}", name(query_type), name(base_type)));
      const Problem problem = make(base_type, query_type);
      const Expected expected(problem.queries, kept.base, 9, GetParam());
      for (std::size_t i = 0; i < prepared.size(); ++i)
        expect_same_answers(every_instruction_set()[i], prepared[i], expected);
      if (HasFailure()) return;
    }
  }
}

// Prepared in one context, searched in another of any other instruction set.
TEST_P(ExactPrepared, AnotherContextWithAnotherInstructionSet) {
  for (const ElementType type : {ElementType::f32, ElementType::u8, ElementType::i8}) {
    const Problem problem = support::make_problem({.kind = Kind::normal,
                                                   .rows = 300,
                                                   .queries = 40,
                                                   .dim = 20,
                                                   .base_type = type,
                                                   .query_type = type,
                                                   .seed = 12'000});
    const oracle::Answer expected = oracle::knn(problem.queries, problem.base, 10, GetParam());
    const float radius = support::radius_at_rank(problem.queries, problem.base, 10, GetParam());
    const oracle::RangeAnswer expected_range =
        oracle::range(problem.queries, problem.base, radius, GetParam());
    for (const Context& made_in : every_instruction_set()) {
      const Exact exact = Exact::prepare(made_in, problem.base, {.metric = GetParam()});
      for (const Context& context : every_instruction_set()) {
        EXPECT_TRUE(same(expected, exact.search(context, problem.queries, 10)))
            << name(type) << " prepared at " << made_in.isa() << ", searched at " << context.isa();
        EXPECT_TRUE(same(expected_range, exact.range_search(context, problem.queries, radius)))
            << name(type) << " prepared at " << made_in.isa() << ", searched at " << context.isa();
      }
    }
  }
}

// Several blocks (a megabyte each at the least), of which several threads take some each.
TEST(ExactPreparedThreads, SeveralBlocksAndShards) {
  for (const ElementType type : {ElementType::f32, ElementType::u8}) {
    const Problem problem = support::make_problem({.kind = Kind::exact_duplicates,
                                                   .rows = 12'000,
                                                   .queries = 300,
                                                   .dim = 100,
                                                   .base_type = type,
                                                   .query_type = type,
                                                   .seed = 13'000});
    const RowsView queries = problem.queries;
    for (const int threads : {1, 3}) {
      const Context context = Context::cpu({.threads = threads});
      const Exact exact = Exact::prepare(context, problem.base);
      EXPECT_GT(context.memory_used(), 1'100'000U) << "one block shows nothing";
      for (const std::size_t count : {1UL, 7UL, 300UL}) {
        const RowsView part = queries.slice(0, count);
        const Neighbors expected = knn(context, part, problem.base, 12);
        EXPECT_TRUE(same(support::as_expected(expected), exact.search(context, part, 12)))
            << count << " queries, " << threads << " threads";
        const float radius = expected.distances(0, 11);
        const RangeNeighbors range = range_search(context, part, problem.base, radius);
        EXPECT_TRUE(same(oracle::RangeAnswer{range.offsets, range.ids, range.distances},
                         exact.range_search(context, part, radius)))
            << count << " queries, " << threads << " threads";
      }
      // One query of each size against the oracle, so that both are right and not only the same.
      EXPECT_TRUE(same(oracle::knn(queries.slice(0, 8), problem.base, 12, Metric::sqeuclidean),
                       exact.search(context, queries.slice(0, 8), 12)));
    }
  }
}

TEST(ExactPreparedThreads, SearchesMayRunAtOnce) {
  const Problem problem = support::make_problem(
      {.kind = Kind::exact_duplicates, .rows = 4000, .queries = 64, .dim = 24, .seed = 14'000});
  const RowsView queries = problem.queries;
  const Context shared = Context::cpu({.threads = 2});
  const Exact exact = Exact::prepare(shared, problem.base, {.metric = Metric::cosine});
  const std::uint64_t kept = shared.memory_used();
  const float radius = support::radius_at_rank(queries, problem.base, 30, Metric::cosine);
  std::vector<std::string> failures(6);  // assertions belong to the main thread
  std::vector<std::thread> callers;
  for (std::size_t i = 0; i < failures.size(); ++i)
    callers.emplace_back([&, i] {
      const RowsView part = queries.slice(i, 1 + 11 * i);
      const oracle::Answer nearest = oracle::knn(part, problem.base, 5 + i, Metric::cosine);
      const oracle::RangeAnswer inside = oracle::range(part, problem.base, radius, Metric::cosine);
      const Context own = Context::cpu({.threads = 1});
      for (int repeat = 0; repeat < 10; ++repeat) {
        const Context& context = repeat % 2 == 0 ? shared : own;
        const auto first = same(nearest, exact.search(context, part, 5 + i));
        if (!first) failures[i] = first.message();
        const auto second = same(inside, exact.range_search(context, part, radius));
        if (!second) failures[i] = second.message();
      }
    });
  for (std::thread& caller : callers) caller.join();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
  EXPECT_EQ(shared.memory_used(), kept);
}

TEST(ExactPreparedMemory, IsCountedAndGivenBack) {
  const Problem problem =
      support::make_problem({.kind = Kind::normal, .rows = 2000, .queries = 40, .dim = 32, .seed = 15'000});
  for (const std::string& isa : instruction_sets()) {
    SCOPED_TRACE(isa);
    const Context context = Context::cpu({.threads = 2, .isa = isa});
    {
      const Exact exact = Exact::prepare(context, problem.base);
      const std::uint64_t kept = context.memory_used();
      EXPECT_GE(kept, 2000U * 32U);  // one byte of an element at the least
      EXPECT_LE(kept, 2 * 2000U * 32U * 4U);
      exact.search(context, problem.queries, 10);
      exact.range_search(context, problem.queries, 40);
      EXPECT_EQ(context.memory_used(), kept);
      Exact again = Exact::prepare(context, problem.base);
      EXPECT_EQ(context.memory_used(), 2 * kept);
      again = Exact::prepare(context, problem.base.view().slice(0, 0));
      EXPECT_EQ(context.memory_used(), kept);
    }
    EXPECT_EQ(context.memory_used(), 0U);
    // A search counts what is kept: a limit that holds the blocks only is refused, and the blocks stay.
    const std::uint64_t limit = 2 * 2000U * 32U * 4U;
    const Context limited = Context::cpu({.threads = 1, .memory_limit = limit, .isa = isa});
    const Exact exact = Exact::prepare(limited, problem.base);
    const std::uint64_t kept = limited.memory_used();
    const auto error = support::error_from([&] { exact.search(limited, problem.queries, 1900); });
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), ErrorCode::out_of_memory) << error->what();
    EXPECT_EQ(limited.memory_used(), kept);
    EXPECT_LE(limited.memory_peak(), limit);
    const Context tight = Context::cpu({.threads = 1, .memory_limit = 50'000, .isa = isa});
    const auto refused = support::error_from([&] { Exact::prepare(tight, problem.base); });
    ASSERT_TRUE(refused.has_value());
    EXPECT_EQ(refused->code(), ErrorCode::out_of_memory) << refused->what();
    EXPECT_EQ(tight.memory_used(), 0U);
  }
}

// The context it was made with may go: the budget lives on.
TEST(ExactPreparedMemory, OutlivesItsContext) {
  const Problem problem =
      support::make_problem({.kind = Kind::normal, .rows = 200, .queries = 40, .dim = 32, .seed = 15'100});
  std::optional<Context> context = Context::cpu({.threads = 1});
  std::optional<Exact> exact = Exact::prepare(*context, problem.base);
  context.reset();
  EXPECT_TRUE(same(oracle::knn(problem.queries, problem.base, 5, Metric::sqeuclidean),
                   exact->search(every_instruction_set().front(), problem.queries, 5)));
  exact.reset();
}

// A cancelled handle made it; another one searches.
TEST(ExactPreparedCancel, BelongsToTheHandle) {
  const Problem problem =
      support::make_problem({.kind = Kind::normal, .rows = 200, .queries = 40, .dim = 32, .seed = 15'200});
  const Context parent = Context::cpu({.threads = 1});
  const Context child = parent.with_progress({});
  const Exact exact = Exact::prepare(child, problem.base);
  child.cancel();
  const auto error = support::error_from([&] { exact.search(child, problem.queries, 5); });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), ErrorCode::cancelled);
  EXPECT_TRUE(support::error_from([&] { Exact::prepare(child, problem.base); }).has_value());
  EXPECT_TRUE(same(oracle::knn(problem.queries, problem.base, 5, Metric::sqeuclidean),
                   exact.search(parent, problem.queries, 5)));
}

// What was moved from may be destroyed and assigned to; the answers go with the state.
TEST(ExactPreparedMoves, KeepTheAnswers) {
  const Problem problem =
      support::make_problem({.kind = Kind::normal, .rows = 100, .queries = 40, .dim = 12, .seed = 16'000});
  const Context context = Context::cpu({.threads = 1});
  const oracle::Answer expected = oracle::knn(problem.queries, problem.base, 5, Metric::euclidean);
  {
    Exact first = Exact::prepare(context, problem.base, {.metric = Metric::euclidean});
    const std::uint64_t kept = context.memory_used();
    Exact second = std::move(first);
    EXPECT_EQ(second.metric(), Metric::euclidean);
    EXPECT_EQ(second.base().rows(), 100U);
    EXPECT_EQ(context.memory_used(), kept);
    EXPECT_TRUE(same(expected, second.search(context, problem.queries, 5)));
    first = std::move(second);
    EXPECT_TRUE(same(expected, first.search(context, problem.queries, 5)));
    EXPECT_EQ(context.memory_used(), kept);
  }
  EXPECT_EQ(context.memory_used(), 0U);
}

TEST(ExactPreparedEdges, FewRowsAndNone) {
  for (const Context& context : every_instruction_set())
    for (const ElementType type : support::every_type)
      for (const std::size_t rows : {0UL, 1UL, 2UL, 15UL, 31UL}) {
        SCOPED_TRACE(fmt::format("{} rows of {} at {}", rows, name(type), context.isa()));
        const Rows base(support::generate(Kind::normal, rows, 6, 17'000), type);
        const Rows queries(support::generate(Kind::normal, 40, 6, 17'001), type);
        for (const Metric metric : support::every_metric) {
          const Exact exact = Exact::prepare(context, base, {.metric = metric});
          for (const std::size_t count : {0UL, 1UL, 40UL}) {
            const RowsView part = queries.view().slice(0, count);
            EXPECT_TRUE(same(oracle::knn(part, base, 3, metric),
                             exact.search(context, part, 3, {.short_rows = ShortRows::pad})));
            EXPECT_TRUE(same(oracle::range(part, base, 1, metric), exact.range_search(context, part, 1)));
          }
        }
      }
}

TEST(ExactPreparedErrors, AreRefusedInWords) {
  Rows base(support::generate(Kind::normal, 9000, 5, 18'000), ElementType::f32);
  const Rows wider(support::generate(Kind::normal, 3, 6, 18'001), ElementType::f32);
  for (const Context& context : every_instruction_set()) {
    const Exact exact = Exact::prepare(context, base);
    for (const auto& error :
         {support::error_from([&] { exact.search(context, wider, 1); }),
          support::error_from([&] { exact.search(context, base, 9001); }),
          support::error_from([&] { exact.search(context, base, 0); }),
          support::error_from([&] { exact.range_search(context, wider, 1); }), support::error_from([&] {
            exact.range_search(context, base, std::numeric_limits<float>::quiet_NaN());
          }),
          support::error_from([&] { Exact::prepare(context, RowsView()); })}) {
      ASSERT_TRUE(error.has_value());
      EXPECT_EQ(error->code(), ErrorCode::invalid_argument) << error->what();
    }
  }
  // The row's number in the base, also in a later block.
  base.put(8777, 4, std::numeric_limits<float>::infinity());
  for (const Context& context : every_instruction_set()) {
    const auto error = support::error_from([&] { Exact::prepare(context, base); });
    ASSERT_TRUE(error.has_value());
    EXPECT_NE(std::string(error->what()).find("base row 8777 "), std::string::npos) << error->what();
    EXPECT_EQ(context.memory_used(), 0U);
  }
}

}  // namespace
}  // namespace nearwise
