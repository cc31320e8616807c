// Exact search where the contract has a corner: ties, signed zeros, overflow, zero vectors, nothing to search.
#include <gtest/gtest.h>

#include <bit>
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

std::vector<Id> ids_of(const Neighbors& neighbors, std::size_t query) {
  return {neighbors.ids.row(query).begin(), neighbors.ids.row(query).end()};
}
std::vector<float> distances_of(const Neighbors& neighbors, std::size_t query) {
  return {neighbors.distances.row(query).begin(), neighbors.distances.row(query).end()};
}

// Would catch: ordering by the f64 sum, or by an f32 computed in another way than the reported one.
TEST(KnnEdges, ATieIsEqualityOfTheReportedValue) {
  // Row 0 is farther in f64 (1 + 2^-28), equal once reported.
  const Rows base(values_of(2, {1, 0x1p-14, 1, 0}), ElementType::f32);
  const Rows query(Values(1, 2), ElementType::f32);
  for (const Context& context : every_instruction_set())
    for (const Metric metric : {Metric::sqeuclidean, Metric::euclidean}) {
      const Neighbors found = knn(context, query, base, 2, {.metric = metric});
      EXPECT_EQ(ids_of(found, 0), (std::vector<Id>{0, 1})) << context.isa();
      EXPECT_EQ(distances_of(found, 0), (std::vector<float>{1, 1})) << context.isa();
    }
}

// Would catch: euclidean as the square root of an already sorted (or already rounded) sqeuclidean answer.
TEST(KnnEdges, EuclideanTiesAreNotSquaredTies) {
  // Squared 1 + 2^-22 and 1 + 2^-23, two f32 numbers; their roots 1 + 2^-23 and 1 + 2^-24 - ..., the second
  // rounds to 1; the third row is at 1 exactly and ties with it.
  const Rows base(values_of(3, {1, 0x1p-11, 0, 1, 0x1p-12, 0x1p-12, 1, 0, 0}), ElementType::f32);
  const Rows query(Values(1, 3), ElementType::f32);
  const float above = std::nextafter(1.0F, 2.0F);
  for (const Context& context : every_instruction_set()) {
    const Neighbors squared = knn(context, query, base, 3, {.metric = Metric::sqeuclidean});
    EXPECT_EQ(ids_of(squared, 0), (std::vector<Id>{2, 1, 0})) << context.isa();
    const Neighbors found = knn(context, query, base, 3, {.metric = Metric::euclidean});
    EXPECT_EQ(ids_of(found, 0), (std::vector<Id>{1, 2, 0})) << context.isa();
    EXPECT_EQ(distances_of(found, 0), (std::vector<float>{1, 1, above})) << context.isa();
  }
}

// Would catch: an order of bit patterns instead of values, which puts -0 before or after +0 whatever the ids.
TEST(KnnEdges, SignedZerosTie) {
  // Products -1e-60, +1e-60, -1e-60, 0: reported -0, +0, -0, +0.
  const Rows base(values_of(1, {-1e-30, 1e-30, -1e-30, 0}), ElementType::f32);
  const Rows query(values_of(1, {1e-30}), ElementType::f32);
  const std::vector<std::uint32_t> bits = {0x80000000, 0, 0x80000000, 0};
  for (const Context& context : every_instruction_set()) {
    const Neighbors found = knn(context, query, base, 4, {.metric = Metric::inner_product});
    EXPECT_EQ(ids_of(found, 0), (std::vector<Id>{0, 1, 2, 3})) << context.isa();
    for (std::size_t rank = 0; rank < 4; ++rank)
      EXPECT_EQ(std::bit_cast<std::uint32_t>(found.distances(0, rank)), bits[rank]) << context.isa() << rank;
  }
  // Many of them, so that ties cross tiles and thresholds.
  Values many(3000, 3);
  const Random random = support::random_for(7, support::Purpose::elements);
  for (std::size_t row = 0; row < many.rows(); ++row)
    for (std::size_t i = 0; i < 3; ++i) many(row, i) = 1e-30 * (random.uniform(3 * row + i) - 0.5);
  support::expect_oracle_answer(Rows(values_of(3, {1e-30, -1e-30, 1e-30}), ElementType::f32),
                                Rows(many, ElementType::f32), 40, {.metric = Metric::inner_product});
}

// Would catch: a first threshold of infinity with a strict comparison, which loses rows whose reported value is
// infinite, or padding that displaces them.
TEST(KnnEdges, InfiniteReportedValuesAreAnswersAndTie) {
  // Row 2 is near, the squares of the others exceed f32.
  const Rows base(values_of(1, {3e38, -3e38, 1, 2e30}), ElementType::f32);
  const Rows query(values_of(1, {2}), ElementType::f32);
  for (const Context& context : every_instruction_set()) {
    const KnnOptions padded = {.metric = Metric::sqeuclidean, .short_rows = ShortRows::pad};
    const Neighbors found = knn(context, query, base, 5, padded);
    EXPECT_EQ(ids_of(found, 0), (std::vector<Id>{2, 0, 1, 3, no_id})) << context.isa();
    EXPECT_EQ(distances_of(found, 0), (std::vector<float>{1, infinity, infinity, infinity, infinity}));
    const Neighbors roots = knn(context, query, base, 4, {.metric = Metric::euclidean});
    EXPECT_EQ(ids_of(roots, 0), (std::vector<Id>{2, 3, 0, 1})) << context.isa();
    EXPECT_EQ(distances_of(roots, 0), (std::vector<float>{1, 2e30F, 3e38F, 3e38F})) << context.isa();
  }
  const Rows far(values_of(1, {3e38, -3e38}), ElementType::f32);
  for (const Context& context : every_instruction_set()) {
    const Neighbors products =
        knn(context, far, far, 3, {.metric = Metric::inner_product, .short_rows = ShortRows::pad});
    EXPECT_EQ(ids_of(products, 0), (std::vector<Id>{0, 1, no_id})) << context.isa();
    EXPECT_EQ(distances_of(products, 1), (std::vector<float>{infinity, -infinity, -infinity}))
        << context.isa();
  }
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
  const Rows queries(values_of(2, {0, 0, 2, 0}), ElementType::f32);
  for (const Context& context : every_instruction_set()) {
    const Neighbors found = knn(context, queries, base, 4, {.metric = Metric::cosine});
    EXPECT_EQ(ids_of(found, 0), (std::vector<Id>{0, 1, 2, 3})) << context.isa();
    EXPECT_EQ(distances_of(found, 0), (std::vector<float>{1, 1, 1, 1})) << context.isa();
    EXPECT_EQ(ids_of(found, 1), (std::vector<Id>{1, 0, 3, 2})) << context.isa();
    EXPECT_EQ(distances_of(found, 1), (std::vector<float>{0, 1, 1, 2})) << context.isa();
  }
}

// Integer products at their extremes: 255 * 255 and -128 * -128 over a long row. Would catch: saturating 16-bit
// multiply-adds (vpmaddubsw) and 32-bit sums that wrap.
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
    for (const Metric metric : every_metric) {
      SCOPED_TRACE(fmt::format("{} {}", name(type), name(metric)));
      support::expect_oracle_answer(rows, rows, 4, {.metric = metric});
    }
  }
}

// A mapped .fvecs or .bvecs file: every row is preceded by its dimension. Would catch: a stride taken in elements,
// or a load that needs alignment.
TEST(KnnEdges, RowsWithHeadersBetweenThem) {
  for (const ElementType type : support::every_type)
    for (const std::int32_t dim : {1, 5, 16, 33}) {
      const std::size_t row_bytes = static_cast<std::size_t>(dim) * element_size(type);
      const std::size_t stride = 4 + row_bytes;
      const Rows dense(support::generate(Kind::normal, 210, static_cast<std::size_t>(dim), 5), type);
      std::vector<std::byte> file(210 * stride);
      for (std::size_t row = 0; row < 210; ++row) {
        std::memcpy(file.data() + row * stride, &dim, 4);
        std::memcpy(file.data() + row * stride + 4, dense.view().row(row), row_bytes);
      }
      const RowsView rows(file.data() + 4, type, 210, static_cast<std::size_t>(dim), stride);
      SCOPED_TRACE(fmt::format("{} dim {}", name(type), dim));
      for (const Metric metric : every_metric)
        support::expect_oracle_answer(rows.slice(200, 10), rows.slice(0, 200), 7, {.metric = metric});
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
  const Rows queries(support::generate(Kind::normal, 5, 6, 1), ElementType::f32);
  for (const Metric metric : every_metric) {
    support::expect_oracle_answer(queries, empty, 4, {.metric = metric, .short_rows = ShortRows::pad});
    support::expect_oracle_answer(empty, empty, 4, {.metric = metric, .short_rows = ShortRows::pad});
  }
  for (const Context& context : every_instruction_set()) {
    const KnnOptions options = {.metric = Metric::inner_product, .short_rows = ShortRows::pad};
    EXPECT_EQ(distances_of(knn(context, queries, empty, 1, options), 4), (std::vector<float>{-infinity}));
  }
}

}  // namespace
}  // namespace nearwise
