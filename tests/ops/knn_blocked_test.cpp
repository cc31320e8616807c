// Exact search on problems of several blocks: thousands of rows, hundreds of queries, k up to 1000.
//
// What these would catch: a lost or doubled row at a block's edge, a candidate buffer that overflows or is
// compacted to fewer than k, a threshold that is not safe after compaction, ties resolved differently across
// blocks, the cancellation of |x|^2 + |y|^2 - 2xy (near-duplicates, offsets), a loop over d that forgets a
// partial sum.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "nearwise/exact.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::CaseRunner;
using support::Kind;
using support::KnnCase;
using support::Problem;
using support::Recipe;
using support::Values;

class KnnBlocked : public testing::TestWithParam<Metric> {
 protected:
  bool run(const Recipe& recipe, std::size_t k) {
    return runner_.run({.recipe = recipe, .metric = GetParam(), .k = k});
  }
  std::uint64_t seed(std::uint64_t number) const {
    return 50'000 + 100 * number + static_cast<int>(GetParam());
  }

  CaseRunner runner_;
};

INSTANTIATE_TEST_SUITE_P(Metric, KnnBlocked, testing::ValuesIn(support::every_metric), support::metric_name);

TEST_P(KnnBlocked, ManyQueries) {
  run({.kind = Kind::normal, .rows = 4099, .queries = 301, .dim = 24, .seed = seed(1)}, 10);
  run({.kind = Kind::exact_duplicates, .rows = 1025, .queries = 513, .dim = 7, .seed = seed(2)}, 33);
}

TEST_P(KnnBlocked, ManyRows) {
  run({.kind = Kind::normal, .rows = 20'011, .queries = 33, .dim = 16, .seed = seed(3)}, 100);
  run({.kind = Kind::integers, .rows = 30'000, .queries = 17, .dim = 4, .seed = seed(4)}, 64);
}

TEST_P(KnnBlocked, EveryElementType) {
  for (const ElementType type : support::every_type) {
    const auto number = static_cast<std::uint64_t>(type);
    run({.kind = Kind::normal,
         .rows = 2500,
         .queries = 130,
         .dim = 64,
         .base_type = type,
         .query_type = type,
         .seed = seed(10 + number)},
        20);
  }
  run({.kind = Kind::normal,
       .rows = 2500,
       .queries = 130,
       .dim = 33,
       .base_type = ElementType::u8,
       .query_type = ElementType::f32,
       .seed = seed(15)},
      20);
}

// k near and at the number of rows: the buffers hold everything and no threshold ever helps.
TEST_P(KnnBlocked, LargeK) {
  run({.kind = Kind::normal, .rows = 4000, .queries = 40, .dim = 16, .seed = seed(20)}, 1000);
  run({.kind = Kind::exact_duplicates, .rows = 3000, .queries = 30, .dim = 9, .seed = seed(21)}, 1000);
  run({.kind = Kind::normal, .rows = 1500, .queries = 20, .dim = 8, .seed = seed(22)}, 1500);
}

// All candidates look alike to any low-precision product, so that nothing can be discarded.
TEST_P(KnnBlocked, NearDuplicates) {
  run({.kind = Kind::near_duplicates, .rows = 3000, .queries = 100, .dim = 48, .seed = seed(30)}, 100);
  run({.kind = Kind::nearer_duplicates, .rows = 3000, .queries = 100, .dim = 48, .seed = seed(31)}, 50);
  run({.kind = Kind::near_duplicates,
       .rows = 2000,
       .queries = 60,
       .dim = 32,
       .base_type = ElementType::u8,
       .query_type = ElementType::u8,
       .seed = seed(32)},
      50);
}

TEST_P(KnnBlocked, IdenticalRows) {
  run({.kind = Kind::identical, .rows = 5003, .queries = 20, .dim = 20, .seed = seed(40)}, 1000);
  run({.kind = Kind::zero_rows, .rows = 5003, .queries = 20, .dim = 20, .seed = seed(41)}, 700);
}

TEST_P(KnnBlocked, FarFromTheOrigin) {
  run({.kind = Kind::offset_1e4, .rows = 3000, .queries = 100, .dim = 40, .seed = seed(50)}, 10);
  run({.kind = Kind::offset_1e6, .rows = 3000, .queries = 100, .dim = 40, .seed = seed(51)}, 10);
}

TEST_P(KnnBlocked, ExtremeRanges) {
  std::uint64_t number = 60;
  for (const Kind kind :
       {Kind::denormal, Kind::tiny, Kind::overflowing, Kind::huge, Kind::largest, Kind::mixed_ranges})
    run({.kind = kind, .rows = 2000, .queries = 60, .dim = 24, .seed = seed(++number)}, 30);
}

// Longer than any panel of a query that stays in the first cache.
TEST_P(KnnBlocked, LongVectors) {
  run({.kind = Kind::normal, .rows = 600, .queries = 40, .dim = 1001, .seed = seed(70)}, 10);
  run({.kind = Kind::near_duplicates, .rows = 600, .queries = 40, .dim = 769, .seed = seed(71)}, 10);
  run({.kind = Kind::normal,
       .rows = 600,
       .queries = 40,
       .dim = 1600,
       .base_type = ElementType::u8,
       .query_type = ElementType::u8,
       .seed = seed(72)},
      10);
  run({.kind = Kind::largest,
       .rows = 300,
       .queries = 20,
       .dim = 4100,
       .base_type = ElementType::i8,
       .query_type = ElementType::i8,
       .seed = seed(73)},
      5);
}

// Queries around one point, and the base in the order worst to best for that point.
Problem worst_order(const Recipe& recipe, Metric metric) {
  const Values all = support::generate(recipe.kind, recipe.rows + 1, recipe.dim, recipe.seed);
  const std::span<const double> centre = all.row(recipe.rows);
  std::vector<oracle::Candidate> order(recipe.rows);
  for (std::size_t row = 0; row < recipe.rows; ++row)
    order[row] = {oracle::reported(metric, centre, all.row(row)), static_cast<Id>(row)};
  std::sort(order.begin(), order.end(), [&](const oracle::Candidate& left, const oracle::Candidate& right) {
    return oracle::better(metric, right, left);
  });
  Values base(recipe.rows, recipe.dim);
  for (std::size_t row = 0; row < recipe.rows; ++row)
    std::ranges::copy(all.row(static_cast<std::size_t>(order[row].id)), base.row(row).begin());
  const Values jitter = support::generate(Kind::normal, recipe.queries, recipe.dim, recipe.seed + 1);
  Values queries(recipe.queries, recipe.dim);
  for (std::size_t query = 0; query < recipe.queries; ++query)
    for (std::size_t i = 0; i < recipe.dim; ++i) queries(query, i) = centre[i] + 1e-3 * jitter(query, i);
  return {support::Rows(queries, recipe.query_type), support::Rows(base, recipe.base_type)};
}

// The worst case for running thresholds: every row is better than all before it, for every query, so that
// every buffer fills and is compacted again and again.
TEST_P(KnnBlocked, RowsFromWorstToBest) {
  std::uint64_t number = 80;
  for (const ElementType type : {ElementType::f32, ElementType::u8})
    for (const std::size_t k : {1UL, 10UL, 500UL}) {
      const Recipe recipe = {.kind = Kind::normal,
                             .rows = 4001,
                             .queries = 45,
                             .dim = 20,
                             .base_type = type,
                             .query_type = type,
                             .seed = seed(++number)};
      runner_.run({.recipe = recipe, .metric = GetParam(), .k = k}, worst_order(recipe, GetParam()));
    }
}

}  // namespace
}  // namespace nearwise
