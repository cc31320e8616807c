// Bases so large that most rows are screened by 8-bit integers where there are such scans, and that few
// queries read packed rows instead of vectors.
//
// What these would catch: a row that 8-bit scores leave open and nobody evaluates, limits that the first rows
// do not set, rows that the search turns to in bf16 or f32 (near-duplicates) left out or returned twice, a
// filter that the estimates pass over.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "nearwise/exact.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::every_instruction_set;
using support::Kind;
using support::Problem;
using support::same;

constexpr std::size_t rows = 17'000;  // 9.8 MB of f32
constexpr std::size_t dim = 144;      // more than 128, up to which AMX multiplies bf16

Problem large_problem(Kind kind, std::size_t queries) {
  return support::make_problem({.kind = kind, .rows = rows, .queries = queries, .dim = dim, .seed = 77});
}

class LargeBase : public testing::TestWithParam<Metric> {};

INSTANTIATE_TEST_SUITE_P(Metric, LargeBase, testing::ValuesIn(support::every_metric), support::metric_name);

TEST_P(LargeBase, FewQueriesOnEveryKindOfData) {
  for (const Kind kind : support::every_kind) {
    const Problem problem = large_problem(kind, 3);
    const oracle::Answer expected = oracle::knn(problem.queries, problem.base, 10, GetParam());
    for (const Context& context : every_instruction_set()) {
      const Exact exact = Exact::prepare(context, problem.base, {.metric = GetParam()});
      EXPECT_TRUE(same(expected, exact.search(context, problem.queries, 10)))
          << name(kind) << " at " << context.isa();
      const oracle::Answer first = {1,
                                    10,
                                    {expected.ids.begin(), expected.ids.begin() + 10},
                                    {expected.distances.begin(), expected.distances.begin() + 10}};
      EXPECT_TRUE(same(first, exact.search(context, problem.queries.view().slice(0, 1), 10)))
          << "one query, " << name(kind) << " at " << context.isa();
    }
    if (HasFailure()) return;
  }
}

TEST_P(LargeBase, ManyQueries) {
  for (const Kind kind : {Kind::normal, Kind::near_duplicates, Kind::nearer_duplicates, Kind::offset_1e4,
                          Kind::mixed_ranges, Kind::cancelling}) {
    const Problem problem = large_problem(kind, 40);
    const oracle::Answer expected = oracle::knn(problem.queries, problem.base, 10, GetParam());
    for (const Context& context : every_instruction_set()) {
      EXPECT_TRUE(same(expected, knn(context, problem.queries, problem.base, 10, {.metric = GetParam()})))
          << name(kind) << " at " << context.isa();
      const Exact exact = Exact::prepare(context, problem.base, {.metric = GetParam()});
      EXPECT_TRUE(same(expected, exact.search(context, problem.queries, 10)))
          << "prepared, " << name(kind) << " at " << context.isa();
    }
    if (HasFailure()) return;
  }
}

// Without their nearest vectors, queries find the next ones.
TEST_P(LargeBase, FewQueriesWithoutTheirNearestRows) {
  for (const Kind kind : {Kind::normal, Kind::near_duplicates}) {
    const Problem problem = large_problem(kind, 3);
    const oracle::Answer expected = oracle::knn(problem.queries, problem.base, 30, GetParam());
    const std::vector<std::size_t> offsets = {0, 20, 40, 60};
    std::vector<Id> excluded;
    oracle::Answer rest = {3, 10, {}, {}};
    for (std::size_t query = 0; query < 3; ++query)
      for (std::size_t rank = 0; rank < 30; ++rank) {
        const std::size_t at = query * 30 + rank;
        if (rank < 20) {
          excluded.push_back(expected.ids[at]);
        } else {
          rest.ids.push_back(expected.ids[at]);
          rest.distances.push_back(expected.distances[at]);
        }
      }
    const Filter filter = Filter::deny_per_query(offsets, excluded);
    for (const Context& context : every_instruction_set()) {
      const Exact exact = Exact::prepare(context, problem.base, {.metric = GetParam()});
      EXPECT_TRUE(same(rest, exact.search(context, problem.queries, 10, {.filter = filter})))
          << name(kind) << " at " << context.isa();
    }
  }
}

}  // namespace
}  // namespace nearwise
