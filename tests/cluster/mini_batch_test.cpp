// k-means on batches of rows: against means in double precision, and within memory that does not grow with
// the rows.
#include "cluster/mini_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "oracle/mini_batch.h"
#include "support/cancelling.h"
#include "support/kmeans_cases.h"
#include "support/memory_limits.h"

namespace nearwise {
namespace {

using cluster::blocks_of_batch;
using cluster::RowBlock;
using support::Kind;
using support::Rows;
using support::same;

std::vector<std::size_t> rows_of_batch(std::uint64_t seed, std::size_t rows, std::size_t batch_size,
                                       std::size_t batch) {
  std::vector<std::size_t> numbers;
  for (const RowBlock& block : blocks_of_batch(seed, rows, batch_size, batch))
    for (std::size_t i = 0; i < block.count; ++i) numbers.push_back(block.first + i);
  return numbers;
}

TEST(MiniBatchDraw, BlocksFromAllOverTheRows) {
  for (const auto& [rows, batch_size] : {std::pair<std::size_t, std::size_t>{100'000, 1000},
                                         {66, 65},
                                         {65, 64},
                                         {2, 1},
                                         {1000, 999},
                                         {5000, 640}}) {
    SCOPED_TRACE(fmt::format("{} of {} rows", batch_size, rows));
    for (const std::size_t batch : {0UL, 1UL, 2UL}) {
      const std::vector<std::size_t> numbers = rows_of_batch(7, rows, batch_size, batch);
      EXPECT_LE(numbers.size(), batch_size);
      EXPECT_GE(numbers.size() + batch_size / 64 + 1, batch_size);
      EXPECT_TRUE(std::ranges::is_sorted(numbers));
      EXPECT_EQ(std::ranges::adjacent_find(numbers), numbers.end()) << "a row twice";
      EXPECT_LT(numbers.back(), rows);
    }
  }
  EXPECT_NE(rows_of_batch(7, 100'000, 1000, 1), rows_of_batch(7, 100'000, 1000, 2));
  EXPECT_NE(rows_of_batch(7, 100'000, 1000, 1), rows_of_batch(8, 100'000, 1000, 1));
  // Every row has its turn, the first and the last too.
  std::vector<int> seen(500, 0);
  for (std::size_t batch = 0; batch < 400; ++batch)
    for (const std::size_t row : rows_of_batch(7, 500, 128, batch)) ++seen[row];
  EXPECT_GT(std::ranges::min(seen), 0);
}

// Centroids differ from the oracle's by their rounding to f32 after every batch, and by nothing else.
TEST(MiniBatch, CentroidsAreWeightedMeansOfTheBatches) {
  for (const ElementType type : {ElementType::f32, ElementType::u8, ElementType::bf16}) {
    const Rows data(support::separate_clusters(3000, 11, 6, 4000), type);
    const RowsView initial = data.view().slice(0, 6);
    std::vector<std::vector<std::size_t>> batches;
    for (std::size_t batch = 1; batch <= 4; ++batch) batches.push_back(rows_of_batch(5, 3000, 300, batch));
    const oracle::Clustering expected = oracle::mini_batches(data, initial, batches);
    for (const std::string& isa : instruction_sets()) {
      const KMeans found =
          train_kmeans(Context::cpu({.seed = 5, .isa = isa}), data, 6,
                       {.iterations = 4, .tolerance = 0, .initial = initial, .batch_size = 300});
      EXPECT_EQ(found.sizes, expected.sizes);
      ASSERT_EQ(found.errors.size(), 4U);
      for (std::size_t i = 0; i < found.errors.size(); ++i)
        EXPECT_NEAR(found.errors[i], expected.errors[i] * 3000 / static_cast<double>(batches[i].size()),
                    1e-5 * expected.errors[0]);
      for (std::size_t i = 0; i < expected.centroids.size(); ++i)
        EXPECT_NEAR(found.centroids.data()[i], expected.centroids[i],
                    1e-6F * std::max(1.0F, std::abs(expected.centroids[i])))
            << name(type) << " " << isa;
    }
  }
}

// Would catch: batches from one end of the rows, steps in the wrong direction, an error of other rows.
TEST(MiniBatch, ComesCloseToAllRowsInEveryIteration) {
  for (const Metric metric : support::kmeans_metrics) {
    const Rows data(support::generate(Kind::normal, 20'000, 6, 4100), ElementType::f32);
    const auto error_of = [&](const KMeans& trained) {
      return oracle::lloyd(data, trained.centroids, 1, metric).errors[0];
    };
    const KMeansOptions all = {.metric = metric, .iterations = 20, .tolerance = 0};
    const KMeansOptions batches = {.metric = metric, .iterations = 40, .tolerance = 0, .batch_size = 2000};
    const KMeans trained = train_kmeans(Context::cpu(), data, 30, batches);
    EXPECT_LT(error_of(trained), 1.02 * error_of(train_kmeans(Context::cpu(), data, 30, all)))
        << name(metric);
    // What it says of its error, from rows of its last batch, is what the error is.
    EXPECT_NEAR(trained.errors.back(), error_of(trained), 0.05 * error_of(trained)) << name(metric);
    if (metric != Metric::sqeuclidean)
      for (std::size_t c = 0; c < 30; ++c) {
        const auto centroid = trained.centroids.row(c);
        EXPECT_NEAR(std::inner_product(centroid.begin(), centroid.end(), centroid.begin(), 0.0), 1, 1e-5);
      }
  }
}

TEST(MiniBatch, StopsWhenTheErrorFallsNoFurther) {
  const Rows data(support::generate(Kind::normal, 5000, 5, 4200), ElementType::f32);
  const KMeans trained =
      train_kmeans(Context::cpu(), data, 10, {.iterations = 500, .tolerance = 1e-3, .batch_size = 1000});
  EXPECT_TRUE(trained.converged);
  EXPECT_LT(trained.errors.size(), 100U);
  EXPECT_GE(trained.errors.size(), 10U);
}

TEST(MiniBatch, NoFewerThanAllRowsAreAllRows) {
  const Rows data(support::generate(Kind::normal, 700, 5, 4300), ElementType::f32);
  const KMeans all = train_kmeans(Context::cpu(), data, 10);
  for (const std::size_t rows : {700UL, 9999UL})
    EXPECT_TRUE(same(all, train_kmeans(Context::cpu(), data, 10, {.batch_size = rows})));
  EXPECT_FALSE(same(all, train_kmeans(Context::cpu(), data, 10, {.batch_size = 699})));
}

TEST(MiniBatchThreads, AnyNumberOfThreadsAndInstructionSetGivesTheSameBytes) {
  const Rows data(support::generate(Kind::exact_duplicates, 9'000, 5, 4400), ElementType::f32);
  for (const Metric metric : {Metric::sqeuclidean, Metric::cosine}) {
    const KMeansOptions options = {.metric = metric, .iterations = 3, .tolerance = 0, .batch_size = 1500};
    const KMeans expected = train_kmeans(Context::cpu({.threads = 1}), data, 20, options);
    for (const int threads : {2, 5})
      EXPECT_TRUE(same(expected, train_kmeans(Context::cpu({.threads = threads}), data, 20, options)));
    for (const Context& context : support::every_instruction_set())
      EXPECT_TRUE(same(expected, train_kmeans(context, data, 20, options))) << context.isa();
  }
}

// Eight bytes per row would be twelve times the limit.
TEST(MiniBatchMemory, DoesNotGrowWithTheRows) {
  const std::size_t rows = 1'500'000;
  std::vector<std::uint8_t> elements(rows * 2);
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<std::uint8_t>(i * 7919 >> 3U);
  const RowsView data(elements.data(), ElementType::u8, rows, 2, 2);
  for (const bool start_given : {false, true}) {
    const KMeansOptions options = {
        .iterations = 3, .initial = start_given ? data.slice(0, 8) : RowsView(), .batch_size = 2048};
    const KMeans expected = train_kmeans(Context::cpu(), data, 8, options);
    const Context refused = Context::cpu({.threads = 2, .memory_limit = 1});
    const auto error = support::error_from([&] { train_kmeans(refused, data, 8, options); });
    ASSERT_TRUE(error && error->code() == ErrorCode::out_of_memory);
    const std::uint64_t least = std::ranges::max(support::sizes_in(error->what()));
    EXPECT_LT(least, 1'000'000U);
    for (const std::uint64_t limit : {least, 2 * least}) {
      const Context context = Context::cpu({.threads = 2, .memory_limit = limit});
      EXPECT_NO_THROW(EXPECT_TRUE(same(expected, train_kmeans(context, data, 8, options))));
      EXPECT_LE(context.memory_peak(), limit);
      EXPECT_EQ(context.memory_used(), 0U);
    }
  }
}

TEST(MiniBatchCancelThreads, StopsWhereverItIs) {
  const Rows data(support::generate(Kind::normal, 5000, 16, 4500), ElementType::f32);
  for (const int when : {0, 1, 5})
    support::expect_cancelled_at_report(when, 2, "", [&](const Context& context) {
      train_kmeans(context, data, 100, {.iterations = 50, .tolerance = 0, .batch_size = 1000});
    });
}

TEST(MiniBatchErrors, WhatIsRefused) {
  Rows data(support::generate(Kind::normal, 5000, 6, 4600), ElementType::f32);
  const auto refused = [&](const KMeansOptions& options, const std::string& words) {
    const auto error = support::error_from([&] { train_kmeans(Context::cpu(), data, 50, options); });
    ASSERT_TRUE(error.has_value()) << words;
    EXPECT_EQ(error->code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(error->what()).find(words), std::string::npos) << error->what();
  };
  refused({.batch_size = 49}, "at least the number of clusters, 50, got 49");
  refused({.balance = 2, .batch_size = 500}, "batch_size and balance cannot be combined");
  refused({.min_cluster_size = 3, .batch_size = 500}, "min_cluster_size must be 1, got 3");
  const auto error =
      support::error_from([&] { train_hierarchical_kmeans(Context::cpu(), data, 50, {.batch_size = 500}); });
  ASSERT_TRUE(error.has_value());
  // Only rows that are looked at count, under their own numbers.
  const std::vector<std::size_t> drawn = rows_of_batch(0, 5000, 500, 2);
  data.put(drawn[77], 3, std::numeric_limits<float>::quiet_NaN());
  refused({.iterations = 50, .tolerance = 0, .batch_size = 500}, fmt::format("row {} ", drawn[77]));
}

}  // namespace
}  // namespace nearwise
