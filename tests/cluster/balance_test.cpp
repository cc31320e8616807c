// Clusters of bounded size: the bound holds exactly, whatever the rows, and rows are where the definition
// puts them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "oracle/balance.h"
#include "support/cancelling.h"
#include "support/kmeans_cases.h"
#include "support/memory_limits.h"

namespace nearwise {
namespace {

using support::Kind;
using support::Rows;
using support::same;

std::size_t max_rows(std::size_t rows, std::size_t clusters, double balance) {
  const auto share = static_cast<double>(rows) / static_cast<double>(clusters);
  return std::max((rows + clusters - 1) / clusters, static_cast<std::size_t>(std::min(balance * share, 1e9)));
}

std::vector<std::size_t> sizes_of(const Neighbors& assigned, std::size_t clusters) {
  std::vector<std::size_t> sizes(clusters, 0);
  for (std::size_t row = 0; row < assigned.ids.rows(); ++row)
    ++sizes[static_cast<std::size_t>(assigned.ids(row, 0))];
  return sizes;
}

class BalanceMetrics : public testing::TestWithParam<Metric> {};
INSTANTIATE_TEST_SUITE_P(Metric, BalanceMetrics, testing::ValuesIn(support::every_metric),
                         support::metric_name);

// Would catch: another order of those who ask, a cluster that is overlooked, followers in the first round.
TEST_P(BalanceMetrics, RowsGoWhereTheDefinitionPutsThem) {
  std::uint64_t seed = 3000;
  for (const Kind kind :
       {Kind::normal, Kind::near_duplicates, Kind::exact_duplicates, Kind::zero_rows, Kind::integers})
    for (const ElementType type : {ElementType::f32, ElementType::u8})
      for (const std::size_t clusters : {1UL, 7UL, 30UL}) {
        const Rows data(support::generate(kind, 250, 6, ++seed), type);
        // Some of them twice.
        const RowsView centroids = data.view().slice(0, clusters);
        for (const double balance : {1.0, 1.3, 4.0}) {
          const auto expected =
              oracle::balanced(data, centroids, max_rows(250, clusters, balance), GetParam());
          for (const Context& context : support::every_instruction_set()) {
            const Neighbors found =
                assign(context, data, centroids, {.metric = GetParam(), .balance = balance});
            for (std::size_t row = 0; row < 250; ++row) {
              ASSERT_EQ(found.ids(row, 0), expected[row].id)
                  << name(kind) << " " << name(type) << " row " << row << " of seed " << seed << ", balance "
                  << balance << ", " << clusters << " clusters, " << context.isa();
              ASSERT_EQ(found.distances(row, 0), expected[row].value);
            }
          }
        }
      }
}

class BalanceKMeansMetrics : public testing::TestWithParam<Metric> {};
INSTANTIATE_TEST_SUITE_P(Metric, BalanceKMeansMetrics, testing::ValuesIn(support::kmeans_metrics),
                         support::metric_name);

TEST_P(BalanceKMeansMetrics, TheBoundIsKeptByTrainingAndAssignment) {
  for (const Kind kind : {Kind::normal, Kind::exact_duplicates, Kind::near_duplicates, Kind::zero_rows})
    for (const auto& [rows, clusters] :
         {std::pair<std::size_t, std::size_t>{600, 20}, {61, 60}, {60, 60}, {119, 60}, {121, 60}, {300, 1}})
      for (const double balance : {1.0, 1.1, 2.5, std::numeric_limits<double>::infinity()}) {
        SCOPED_TRACE(fmt::format("{} {} rows, {} clusters, balance {}", name(kind), rows, clusters, balance));
        const Rows data(support::generate(kind, rows, 9, 3100), ElementType::f32);
        const KMeans trained = train_kmeans(Context::cpu(), data, clusters,
                                            {.metric = GetParam(), .iterations = 4, .balance = balance});
        const std::size_t most = max_rows(rows, clusters, balance);
        EXPECT_LE(std::ranges::max(trained.sizes), most);
        EXPECT_EQ(std::accumulate(trained.sizes.begin(), trained.sizes.end(), std::size_t{0}), rows);
        const Neighbors assigned =
            assign(Context::cpu(), data, trained.centroids, {.metric = GetParam(), .balance = balance});
        EXPECT_LE(std::ranges::max(sizes_of(assigned, clusters)), most);
      }
}

// A bound that no cluster reaches changes nothing.
TEST(Balance, AWideBoundIsNone) {
  const Rows data(support::generate(Kind::normal, 900, 8, 3200), ElementType::f32);
  for (const Metric metric : support::kmeans_metrics)
    EXPECT_TRUE(same(train_kmeans(Context::cpu(), data, 12, {.metric = metric}),
                     train_kmeans(Context::cpu(), data, 12, {.metric = metric, .balance = 12})));
}

// One group of nearly all rows, and few elsewhere: plain k-means makes clusters of very different sizes.
// Would catch: a bound that holds by sending rows anywhere.
TEST(Balance, CostsLittleWhereClustersCanShare) {
  const Rows data(support::generate(Kind::normal, 4000, 4, 3300), ElementType::f32);
  const auto train = [&](std::optional<double> balance) {
    return train_kmeans(Context::cpu(), data, 40, {.iterations = 30, .tolerance = 1e-3, .balance = balance});
  };
  const KMeans plain = train(std::nullopt);
  ASSERT_GT(std::ranges::max(plain.sizes), 140U);
  const KMeans balanced = train(1.1);
  EXPECT_LE(std::ranges::max(balanced.sizes), 110U);
  EXPECT_LT(balanced.errors.back(), 1.08 * plain.errors.back());
  // The reported error is that of the reported clusters: with these centroids moved, no better assignment is
  // far off.
  const Neighbors assigned = assign(Context::cpu(), data, balanced.centroids, {.balance = 1.1});
  double error = 0;
  for (std::size_t row = 0; row < 4000; ++row) error += static_cast<double>(assigned.distances(row, 0));
  EXPECT_NEAR(error, balanced.errors.back(), 0.02 * error);
}

TEST(BalanceThreads, AnyNumberOfThreadsAndInstructionSetGivesTheSameBytes) {
  for (const Kind kind : {Kind::normal, Kind::exact_duplicates}) {
    const Rows data(support::generate(kind, 9'000, 5, 3400), ElementType::f32);
    const KMeansOptions options = {.iterations = 2, .tolerance = 0, .balance = 1.05};
    const KMeans expected = train_kmeans(Context::cpu({.threads = 1}), data, 37, options);
    for (const int threads : {2, 5})
      EXPECT_TRUE(same(expected, train_kmeans(Context::cpu({.threads = threads}), data, 37, options)));
    for (const Context& context : support::every_instruction_set())
      EXPECT_TRUE(same(expected, train_kmeans(context, data, 37, options))) << context.isa();
  }
}

template <typename Work>
std::uint64_t min_memory(int threads, const Work& work) {
  const Context context = Context::cpu({.threads = threads, .memory_limit = 1});
  const auto error = support::error_from([&] { work(context); });
  if (!error || error->code() != ErrorCode::out_of_memory) {
    ADD_FAILURE() << (error ? error->what() : "one byte was enough");
    return 0;
  }
  return std::ranges::max(support::sizes_in(error->what()));
}

TEST(BalanceMemory, TightLimitsGiveTheSameBytesWithinTheLimit) {
  const Rows data(support::generate(Kind::exact_duplicates, 2000, 24, 3500), ElementType::f32);
  const KMeansOptions options = {.iterations = 2, .balance = 1.2};
  const KMeans expected = train_kmeans(Context::cpu(), data, 60, options);
  const auto assigning = [&](const Context& context) {
    return assign(context, data, expected.centroids, {.balance = 1.2});
  };
  const Neighbors expected_assignment = assigning(Context::cpu());
  for (const int threads : {1, 3}) {
    const std::uint64_t least =
        min_memory(threads, [&](const Context& context) { train_kmeans(context, data, 60, options); });
    for (const std::uint64_t limit : {least, 2 * least}) {
      const Context context = Context::cpu({.threads = threads, .memory_limit = limit});
      EXPECT_NO_THROW(EXPECT_TRUE(same(expected, train_kmeans(context, data, 60, options))));
      EXPECT_LE(context.memory_peak(), limit);
      EXPECT_EQ(context.memory_used(), 0U);
    }
    const std::uint64_t min_to_assign = min_memory(threads, assigning);
    const Context context = Context::cpu({.threads = threads, .memory_limit = min_to_assign});
    const Neighbors found = assigning(context);
    for (std::size_t row = 0; row < 2000; ++row)
      ASSERT_EQ(found.ids(row, 0), expected_assignment.ids(row, 0));
    EXPECT_LE(context.memory_peak(), min_to_assign);
  }
}

TEST(BalanceErrors, WhatIsRefused) {
  const Rows data(support::generate(Kind::normal, 50, 6, 3600), ElementType::f32);
  const auto refused = [&](const auto& work, const std::string& words) {
    const auto error = support::error_from(work);
    ASSERT_TRUE(error.has_value()) << words;
    EXPECT_EQ(error->code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(error->what()).find(words), std::string::npos) << error->what();
  };
  for (const double balance : {0.99, -1.0, std::nan("")}) {
    refused([&] { train_kmeans(Context::cpu(), data, 5, {.balance = balance}); },
            "balance must be at least 1");
    refused([&] { assign(Context::cpu(), data, data.view().slice(0, 5), {.balance = balance}); },
            "balance must be at least 1");
  }
  refused([&] { train_hierarchical_kmeans(Context::cpu(), data, 5, {.balance = 2}); }, "takes no balance");
  EXPECT_EQ(assign(Context::cpu(), data.view().slice(0, 0), data, {.balance = 1}).ids.rows(), 0U);
}

}  // namespace
}  // namespace nearwise
