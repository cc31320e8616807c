// What must hold of exact search whatever the answer is. Each property names the fault that it would catch.
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

using support::as_expected;
using support::every_instruction_set;
using support::Kind;
using support::Rows;
using support::same;
using support::Values;

class KnnProperties : public testing::TestWithParam<Metric> {
 protected:
  KnnOptions options() const { return {.metric = GetParam()}; }
};

INSTANTIATE_TEST_SUITE_P(Metric, KnnProperties, testing::ValuesIn(support::every_metric),
                         support::metric_name);

Values permuted(const Values& values, const std::vector<std::size_t>& order) {
  Values result(values.rows(), values.dim());
  for (std::size_t row = 0; row < values.rows(); ++row)
    std::ranges::copy(values.row(order[row]), result.row(row).begin());
  return result;
}

std::vector<std::size_t> random_order(std::size_t size, std::uint64_t seed) {
  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), 0);
  const Random random(seed);
  for (std::size_t i = size; i > 1; --i) std::swap(order[i - 1], order[random.below(i, i)]);
  return order;
}

// Would catch: an answer that depends on where a row lies (a tile's edge, the last rows of a block, a
// threshold that some orders never reach).
TEST_P(KnnProperties, PermutingTheBasePermutesIds) {
  const Values base = support::generate(Kind::normal, 1777, 23, 1);
  const Rows queries(support::generate(Kind::normal, 40, 23, 2), ElementType::f32);
  const std::vector<std::size_t> order = random_order(base.rows(), 3);
  const Rows shuffled(permuted(base, order), ElementType::f32);
  for (const Context& context : every_instruction_set()) {
    oracle::Answer expected = as_expected(knn(context, queries, Rows(base, ElementType::f32), 25, options()));
    for (std::size_t i = 1; i < expected.distances.size(); ++i)
      ASSERT_TRUE(i % 25 == 0 || expected.distances[i] != expected.distances[i - 1])
          << "a tie: take another seed";
    Neighbors found = knn(context, queries, shuffled, 25, options());
    for (std::size_t query = 0; query < 40; ++query)
      for (Id& id : found.ids.row(query)) id = static_cast<Id>(order[static_cast<std::size_t>(id)]);
    EXPECT_TRUE(same(expected, found)) << context.isa();
  }
}

// A row that no query wants, at the front so that all ids move. It moves the mean and the scale of all data
// with it. Would catch: error bounds that assume data of one scale.
TEST_P(KnnProperties, AFarRowChangesNothing) {
  for (const double magnitude : {1e2, 1e6, 1e15, 1e30}) {
    // Positive data: for inner product and cosine "far" is the opposite direction.
    const Values base = support::generate(Kind::uniform, 900, 31, 4);
    const Rows queries(support::generate(Kind::uniform, 33, 31, 5), ElementType::f32);
    Values longer(901, 31);
    std::ranges::fill(longer.row(0), -magnitude);
    for (std::size_t row = 0; row < 900; ++row) std::ranges::copy(base.row(row), longer.row(row + 1).begin());
    for (const Context& context : every_instruction_set()) {
      oracle::Answer expected =
          as_expected(knn(context, queries, Rows(base, ElementType::f32), 50, options()));
      for (Id& id : expected.ids) ++id;
      EXPECT_TRUE(same(expected, knn(context, queries, Rows(longer, ElementType::f32), 50, options())))
          << context.isa() << " magnitude " << magnitude;
    }
  }
}

// Would catch: answers that depend on the rest of the base (centring, scales, thresholds), and ids that lose
// the order of a tie. Duplicates and integers make ties across the cuts.
TEST_P(KnnProperties, SplittingTheBaseAndMergingEqualsTheWhole) {
  constexpr std::size_t k = 30;
  for (const Kind kind : {Kind::exact_duplicates, Kind::integers, Kind::mixed_ranges}) {
    const Rows base(support::generate(kind, 1300, 6, 6), ElementType::f32);
    const Rows queries(support::generate(kind, 35, 6, 7), ElementType::f32);
    for (const Context& context : every_instruction_set()) {
      std::vector<std::vector<oracle::Candidate>> merged(35);
      std::size_t first = 0;
      for (const std::size_t count : {1UL, 500UL, 17UL, 782UL}) {
        const KnnOptions part_options = {.metric = GetParam(), .short_rows = ShortRows::pad};
        const Neighbors part = knn(context, queries, base.view().slice(first, count), k, part_options);
        for (std::size_t query = 0; query < 35; ++query)
          for (std::size_t rank = 0; rank < std::min(k, count); ++rank)
            merged[query].push_back(
                {part.distances(query, rank), part.ids(query, rank) + static_cast<Id>(first)});
        first += count;
      }
      ASSERT_EQ(first, 1300U);
      oracle::Answer expected{35, k, {}, {}};
      for (auto& candidates : merged) {
        std::ranges::sort(candidates, [&](const auto& left, const auto& right) {
          return oracle::better(GetParam(), left, right);
        });
        for (std::size_t rank = 0; rank < k; ++rank) {
          expected.ids.push_back(candidates[rank].id);
          expected.distances.push_back(candidates[rank].value);
        }
      }
      EXPECT_TRUE(same(expected, knn(context, queries, base, k, options()))) << context.isa() << name(kind);
    }
  }
}

// Would catch: state shared between queries of a panel, and other code paths for one query than for many.
TEST_P(KnnProperties, AQueryAloneEqualsTheQueryInABatch) {
  const Rows base(support::generate(Kind::exact_duplicates, 1100, 18, 8), ElementType::bf16);
  const Rows queries(support::generate(Kind::exact_duplicates, 70, 18, 9), ElementType::f32);
  for (const Context& context : every_instruction_set()) {
    const Neighbors batch = knn(context, queries, base, 12, options());
    for (std::size_t query = 0; query < 70; ++query) {
      const Neighbors alone = knn(context, queries.view().slice(query, 1), base, 12, options());
      ASSERT_TRUE(std::ranges::equal(alone.ids.row(0), batch.ids.row(query)))
          << context.isa() << " " << query;
      ASSERT_TRUE(std::ranges::equal(alone.distances.row(0), batch.distances.row(query))) << query;
    }
  }
}

// Would catch: a selection that is right for one size of buffer only.
TEST_P(KnnProperties, FewerNeighboursAreAPrefixOfMore) {
  const Rows base(support::generate(Kind::integers, 2100, 5, 10), ElementType::i8);
  const Rows queries(support::generate(Kind::integers, 20, 5, 11), ElementType::i8);
  for (const Context& context : every_instruction_set()) {
    const Neighbors all = knn(context, queries, base, 2100, options());
    for (const std::size_t k : {1UL, 2UL, 15UL, 16UL, 17UL, 100UL, 1024UL, 1025UL, 2099UL}) {
      const Neighbors some = knn(context, queries, base, k, options());
      for (std::size_t query = 0; query < 20; ++query) {
        ASSERT_TRUE(std::ranges::equal(some.ids.row(query), all.ids.row(query).first(k)))
            << context.isa() << " " << k;
        ASSERT_TRUE(std::ranges::equal(some.distances.row(query), all.distances.row(query).first(k))) << k;
      }
    }
  }
}

// Scaling by a power of two is exact in every step, so every bit moves along. Would catch: an absolute
// tolerance.
TEST_P(KnnProperties, ScalingByAPowerOfTwoScalesDistances) {
  Values base = support::generate(Kind::near_duplicates, 700, 21, 12);
  Values queries = support::generate(Kind::near_duplicates, 25, 21, 12);
  for (const Context& context : every_instruction_set()) {
    oracle::Answer expected = as_expected(
        knn(context, Rows(queries, ElementType::bf16), Rows(base, ElementType::bf16), 40, options()));
    for (const int exponent : {-40, 40}) {
      const auto scaled = [&](const Values& values) {
        Values result = values;
        for (std::size_t row = 0; row < values.rows(); ++row)
          for (double& value : result.row(row)) value = std::ldexp(value, exponent);
        return Rows(result, ElementType::bf16);
      };
      const int of_distance = GetParam() == Metric::cosine      ? 0
                              : GetParam() == Metric::euclidean ? exponent
                                                                : 2 * exponent;
      oracle::Answer moved = expected;
      for (float& distance : moved.distances) distance = std::ldexp(distance, of_distance);
      EXPECT_TRUE(same(moved, knn(context, scaled(queries), scaled(base), 40, options())))
          << context.isa() << " 2^" << exponent;
    }
  }
}

}  // namespace
}  // namespace nearwise
