// Exact search where the contract has a corner: ties, signed zeros, overflow, zero vectors, nothing to
// search.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <limits>
#include <vector>

#include "nearwise/exact.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::every_instruction_set;
using support::every_metric;
using support::Kind;
using support::Rows;
using support::Values;

constexpr float infinity = std::numeric_limits<float>::infinity();

Values values_of(std::size_t dim, std::initializer_list<double> numbers) {
  Values values(numbers.size() / dim, dim);
  std::ranges::copy(numbers, values.row(0).begin());
  return values;
}

// What one query finds, at every instruction set, alone and among many.
void expect_found(const Rows& base, const Values& query, std::size_t k, const KnnOptions& options,
                  const std::vector<Id>& ids, const std::vector<float>& distances) {
  for (const Context& context : every_instruction_set())
    for (const std::size_t copies : support::few_and_many) {
      const Neighbors found =
          knn(context, Rows(support::repeated(query, copies), ElementType::f32), base, k, options);
      oracle::Answer expected{copies, k, {}, {}};
      for (std::size_t copy = 0; copy < copies; ++copy) {
        expected.ids.insert(expected.ids.end(), ids.begin(), ids.end());
        expected.distances.insert(expected.distances.end(), distances.begin(), distances.end());
      }
      EXPECT_TRUE(support::same(expected, found))
          << context.isa() << " " << name(options.metric) << ", " << copies << " queries";
    }
}

// Would catch: ordering by the f64 sum, or by an f32 computed in another way than the reported one.
TEST(KnnEdges, ATieIsEqualityOfTheReportedValue) {
  // Row 0 is farther in f64 (1 + 2^-28), equal once reported.
  const Rows base(values_of(2, {1, 0x1p-14, 1, 0}), ElementType::f32);
  for (const Metric metric : {Metric::sqeuclidean, Metric::euclidean})
    expect_found(base, Values(1, 2), 2, {.metric = metric}, {0, 1}, {1, 1});
}

// Would catch: euclidean as the square root of an already sorted (or already rounded) sqeuclidean answer.
TEST(KnnEdges, EuclideanTiesAreNotSquaredTies) {
  // Squared 1 + 2^-22 and 1 + 2^-23, two f32 numbers; their roots 1 + 2^-23 and 1 + 2^-24 - ..., the second
  // rounds to 1; the third row is at 1 exactly and ties with it.
  const Rows base(values_of(3, {1, 0x1p-11, 0, 1, 0x1p-12, 0x1p-12, 1, 0, 0}), ElementType::f32);
  expect_found(base, Values(1, 3), 3, {.metric = Metric::sqeuclidean}, {2, 1, 0},
               {1, 1 + 0x1p-23F, 1 + 0x1p-22F});
  expect_found(base, Values(1, 3), 3, {.metric = Metric::euclidean}, {1, 2, 0}, {1, 1, 1 + 0x1p-23F});
}

// Would catch: an order of bit patterns instead of values, which puts -0 before or after +0 whatever the ids.
TEST(KnnEdges, SignedZerosTie) {
  // Products -1e-60, +1e-60, -1e-60, 0.
  const Rows base(values_of(1, {-1e-30, 1e-30, -1e-30, 0}), ElementType::f32);
  expect_found(base, values_of(1, {1e-30}), 4, {.metric = Metric::inner_product}, {0, 1, 2, 3},
               {-0.0F, 0.0F, -0.0F, 0.0F});
  // Many of them, so that ties cross tiles and thresholds.
  Values many(3000, 3);
  const Random random = support::random_for(7, support::Purpose::elements);
  for (std::size_t row = 0; row < many.rows(); ++row)
    for (std::size_t i = 0; i < 3; ++i) many(row, i) = 1e-30 * (random.uniform(3 * row + i) - 0.5);
  const Values query = values_of(3, {1e-30, -1e-30, 1e-30});
  for (const std::size_t copies : support::few_and_many)
    support::expect_oracle_answer(Rows(support::repeated(query, copies), ElementType::f32),
                                  Rows(many, ElementType::f32), 40, {.metric = Metric::inner_product});
}

// Would catch: a first threshold of infinity with a strict comparison, which loses rows whose reported value
// is infinite, or padding that displaces them.
TEST(KnnEdges, InfiniteReportedValuesAreAnswersAndTie) {
  // Row 2 is near, the squares of the others exceed f32.
  const Rows base(values_of(1, {3e38, -3e38, 1, 2e30}), ElementType::f32);
  const Values query = values_of(1, {2});
  expect_found(base, query, 5, {.metric = Metric::sqeuclidean, .short_rows = ShortRows::pad},
               {2, 0, 1, 3, no_id}, {1, infinity, infinity, infinity, infinity});
  expect_found(base, query, 4, {.metric = Metric::euclidean}, {2, 3, 0, 1}, {1, 2e30F, 3e38F, 3e38F});
  // A product of -infinity is a neighbour still, padding is not.
  const Rows far(values_of(1, {3e38, -3e38}), ElementType::f32);
  expect_found(far, values_of(1, {-3e38}), 3, {.metric = Metric::inner_product, .short_rows = ShortRows::pad},
               {1, 0, no_id}, {infinity, -infinity, -infinity});
}

// A vector finds itself at exactly 0, whatever its type and scale; of several copies the first.
// Would catch: a cosine by normalised vectors (1 - 0.99999994), any GEMM-based distance.
TEST(KnnEdges, AVectorAndItselfAreAtZero) {
  for (const Kind kind : {Kind::normal, Kind::mixed_ranges, Kind::denormal, Kind::largest, Kind::offset_1e6})
    for (const ElementType type : support::every_type) {
      const Rows rows(support::generate(kind, 150, 19, 11), type);
      const std::vector<double> exact = oracle::to_doubles(rows);
      for (const Metric metric : {Metric::sqeuclidean, Metric::euclidean, Metric::cosine})
        for (const Context& context : every_instruction_set()) {
          SCOPED_TRACE(fmt::format("{} {} {} {}", name(kind), name(type), name(metric), context.isa()));
          const Neighbors found = knn(context, rows, rows, 1, {.metric = metric});
          for (std::size_t row = 0; row < rows.rows(); ++row) {
            const auto first = exact.begin() + static_cast<std::ptrdiff_t>(row * 19);
            const bool is_zero = std::all_of(first, first + 19, [](double value) { return value == 0.0; });
            const float expected = metric == Metric::cosine && is_zero ? 1.0F : 0.0F;
            ASSERT_EQ(found.distances(row, 0), expected) << row;
            ASSERT_LE(found.ids(row, 0), static_cast<Id>(row));
          }
        }
    }
}

// A zero vector has no direction: 1 from everything, itself included. Would catch: 0 / 0.
TEST(KnnEdges, CosineOfZeroVectors) {
  const Rows base(values_of(2, {0, 0, 1, 0, -1, 0, 0, 5}), ElementType::f32);
  expect_found(base, values_of(2, {0, 0}), 4, {.metric = Metric::cosine}, {0, 1, 2, 3}, {1, 1, 1, 1});
  expect_found(base, values_of(2, {2, 0}), 4, {.metric = Metric::cosine}, {1, 0, 3, 2}, {0, 1, 1, 2});
}

// Integer products at their extremes: 255 * 255 and -128 * -128 over a long row. Would catch: saturating
// 16-bit multiply-adds (vpmaddubsw) and 32-bit sums that wrap.
TEST(KnnEdges, IntegerExtremes) {
  constexpr std::size_t dim = 70'000;  // 70,000 * 255^2 > 2^32
  for (const ElementType type : {ElementType::u8, ElementType::i8}) {
    Values values(4, dim);
    for (std::size_t i = 0; i < dim; ++i) {
      values(0, i) = 1e9;
      values(1, i) = -1e9;
      values(3, i) = i % 2 == 0 ? 1e9 : -1e9;
    }
    const Rows rows(values, type);
    const Rows many(support::repeated(values, support::few_and_many.back()), type);
    for (const Metric metric : every_metric) {
      SCOPED_TRACE(fmt::format("{} {}", name(type), name(metric)));
      support::expect_oracle_answer(rows, rows, 4, {.metric = metric});
      support::expect_oracle_answer(many, rows, 4, {.metric = metric});
    }
  }
}

// A mapped .fvecs or .bvecs file: every row is preceded by its dimension. Would catch: a stride taken in
// elements, or a load that needs alignment.
TEST(KnnEdges, RowsWithHeadersBetweenThem) {
  for (const ElementType type : support::every_type)
    for (const std::int32_t dim : {1, 5, 16, 33}) {
      const std::size_t row_bytes = static_cast<std::size_t>(dim) * element_size(type);
      const std::size_t stride = 4 + row_bytes;
      const Rows dense(support::generate(Kind::normal, 240, static_cast<std::size_t>(dim), 5), type);
      std::vector<std::byte> file(240 * stride);
      for (std::size_t row = 0; row < 240; ++row) {
        std::memcpy(file.data() + row * stride, &dim, 4);
        std::memcpy(file.data() + row * stride + 4, dense.view().row(row), row_bytes);
      }
      const RowsView rows(file.data() + 4, type, 240, static_cast<std::size_t>(dim), stride);
      SCOPED_TRACE(fmt::format("{} dim {}", name(type), dim));
      for (const Metric metric : every_metric)
        for (const std::size_t queries : support::few_and_many)
          support::expect_oracle_answer(rows.slice(200, queries), rows.slice(0, 200), 7, {.metric = metric});
    }
}

TEST(KnnEdges, AnEmptyBatchGivesAnEmptyAnswer) {
  const Rows base(support::generate(Kind::normal, 50, 6, 1), ElementType::f32);
  for (const Context& context : every_instruction_set())
    for (const Metric metric : every_metric) {
      const Neighbors found = knn(context, Rows(Values(0, 6), ElementType::f32), base, 3, {.metric = metric});
      EXPECT_EQ(found.ids.rows(), 0U);
      EXPECT_EQ(found.ids.cols(), 3U);
      EXPECT_EQ(found.distances.rows(), 0U);
      EXPECT_EQ(found.distances.cols(), 3U);
    }
}

TEST(KnnEdges, AnEmptyBaseGivesPadding) {
  const Rows empty(Values(0, 6), ElementType::f32);
  const Rows queries(support::generate(Kind::normal, 40, 6, 1), ElementType::f32);
  for (const Metric metric : every_metric) {
    support::expect_oracle_answer(queries, empty, 4, {.metric = metric, .short_rows = ShortRows::pad});
    support::expect_oracle_answer(empty, empty, 4, {.metric = metric, .short_rows = ShortRows::pad});
  }
  // Not only as the oracle says: the sign of the padding by hand.
  expect_found(empty, support::generate(Kind::normal, 1, 6, 1), 1,
               {.metric = Metric::inner_product, .short_rows = ShortRows::pad}, {no_id}, {-infinity});
}

}  // namespace
}  // namespace nearwise
