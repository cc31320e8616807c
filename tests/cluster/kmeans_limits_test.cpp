// k-means under limits: threads, memory, cancellation, progress, and arguments that are refused.
//
// The suites named *Threads* are those that ThreadSanitizer runs.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "backend/stages.h"
#include "support/cancelling.h"
#include "support/kmeans_cases.h"
#include "support/memory_limits.h"

namespace nearwise {
namespace {

using support::Kind;
using support::Rows;
using support::same;

// Clusters of more rows than one task takes, empty ones, ties. Would catch: sums in an order that threads
// decide.
TEST(KMeansThreads, AnyNumberOfThreadsAndInstructionSetGivesTheSameBytes) {
  for (const Metric metric : support::kmeans_metrics)
    for (const Kind kind : {Kind::normal, Kind::exact_duplicates, Kind::near_duplicates}) {
      const Rows data(support::generate(kind, 9'000, 5, 20), ElementType::f32);
      for (const std::size_t clusters : {2UL, 37UL}) {
        const KMeansOptions options = {.metric = metric, .iterations = 3, .tolerance = 0};
        const KMeans expected = train_kmeans(Context::cpu({.threads = 1}), data, clusters, options);
        for (const int threads : {2, 5})
          EXPECT_TRUE(
              same(expected, train_kmeans(Context::cpu({.threads = threads}), data, clusters, options)))
              << threads << " threads, " << name(metric) << " " << name(kind);
        for (const Context& context : support::every_instruction_set())
          EXPECT_TRUE(same(expected, train_kmeans(context, data, clusters, options)))
              << context.isa() << " " << name(metric) << " " << name(kind);
      }
    }
}

std::uint64_t min_memory(RowsView rows, std::size_t clusters, const KMeansOptions& options, int threads,
                         const std::string& isa) {
  const Context context = Context::cpu({.threads = threads, .memory_limit = 1, .isa = isa});
  const auto error = support::error_from([&] { train_kmeans(context, rows, clusters, options); });
  if (!error || error->code() != ErrorCode::out_of_memory) {
    ADD_FAILURE() << (error ? error->what() : "one byte was enough");
    return 0;
  }
  return std::ranges::max(support::sizes_in(error->what()));
}

TEST(KMeansMemory, TightLimitsGiveTheSameBytesWithinTheLimit) {
  const Rows data(support::generate(Kind::exact_duplicates, 2000, 24, 21), ElementType::f32);
  for (const Metric metric : {Metric::sqeuclidean, Metric::cosine})
    for (const std::size_t clusters : {1UL, 60UL})
      for (const Seeding seeding : {Seeding::plus_plus, Seeding::random}) {
        const KMeansOptions options = {.metric = metric, .iterations = 2, .seeding = seeding};
        const KMeans expected = train_kmeans(Context::cpu(), data, clusters, options);
        for (const std::string& isa : instruction_sets())
          for (const int threads : {1, 3}) {
            const std::uint64_t least = min_memory(data, clusters, options, threads, isa);
            for (const std::uint64_t limit : {least, 2 * least}) {
              SCOPED_TRACE(fmt::format("{} {} threads, limit {} of least {}", isa, threads, limit, least));
              const Context context = Context::cpu({.threads = threads, .memory_limit = limit, .isa = isa});
              EXPECT_NO_THROW(EXPECT_TRUE(same(expected, train_kmeans(context, data, clusters, options))));
              EXPECT_LE(context.memory_peak(), limit);
              EXPECT_EQ(context.memory_used(), 0U);
            }
          }
      }
}

TEST(KMeansCancelThreads, StopsWhereverItIs) {
  const Rows data(support::generate(Kind::normal, 5000, 16, 22), ElementType::f32);
  for (const int threads : {1, 2})
    for (const int when : {0, 1, 5})
      support::expect_cancelled_at_report(when, threads, "", [&](const Context& context) {
        train_kmeans(context, data, 100, {.iterations = 20, .tolerance = 0});
      });
  const Context cancelled = Context::cpu();
  cancelled.cancel();
  const auto error = support::error_from([&] { train_kmeans(cancelled, data, 3); });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), ErrorCode::cancelled);
}

TEST(KMeansProgressThreads, CountsUpToTheTotal) {
  const Rows data(support::generate(Kind::normal, 5000, 16, 23), ElementType::f32);
  std::vector<Progress> reports;
  std::atomic<int> seconds = 0;
  const Context context =
      Context::cpu({.threads = 2,
                    .progress = [&](const Progress& progress) { reports.push_back(progress); },
                    .clock = [&] { return static_cast<double>(++seconds); }});
  train_kmeans(context, data, 30, {.iterations = 4});
  ASSERT_GT(reports.size(), 3U);
  for (std::size_t i = 0; i < reports.size(); ++i) {
    EXPECT_STREQ(reports[i].operation, "train_kmeans");
    EXPECT_EQ(reports[i].total, Stages::total);
    EXPECT_LE(reports[i].done, reports[i].total);
    EXPECT_TRUE(i == 0 || reports[i].done >= reports[i - 1].done);
  }
  EXPECT_EQ(reports.back().done, reports.back().total);
}

void expect_refused(RowsView rows, std::size_t clusters, const KMeansOptions& options,
                    const std::string& words) {
  const auto error = support::error_from([&] { train_kmeans(Context::cpu(), rows, clusters, options); });
  ASSERT_TRUE(error.has_value()) << words;
  EXPECT_EQ(error->code(), ErrorCode::invalid_argument) << error->what();
  EXPECT_NE(std::string(error->what()).find(words), std::string::npos) << error->what();
}

TEST(KMeansErrors, ArgumentsThatMakeNoSense) {
  const Rows data(support::generate(Kind::normal, 50, 6, 24), ElementType::f32);
  const Rows narrow(support::generate(Kind::normal, 3, 5, 24), ElementType::f32);
  expect_refused(data, 0, {}, "at least 1 cluster");
  expect_refused(data, 51, {}, "51 clusters and 50 rows");
  expect_refused(data.view().slice(0, 0), 1, {}, "1 clusters and 0 rows");
  expect_refused(data, 3, {.metric = Metric::euclidean}, "got euclidean");
  expect_refused(data, 3, {.iterations = 0}, "at least 1 iteration");
  expect_refused(data, 3, {.tolerance = -1}, "tolerance");
  expect_refused(data, 3, {.tolerance = std::nan("")}, "tolerance");
  expect_refused(data, 3, {.min_cluster_size = 0}, "min_cluster_size");
  expect_refused(data, 3, {.min_cluster_size = 17}, "1 to 16");
  expect_refused(data, 3, {.initial = narrow}, "[3, 6], got [3, 5]");
  expect_refused(data, 4, {.initial = data.view().slice(0, 3)}, "[4, 6], got [3, 6]");
  const auto error = support::error_from([&] { assign(Context::cpu(), data, data.view().slice(0, 0)); });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), ErrorCode::invalid_argument);
}

// The lowest row is named, whatever the threads.
TEST(KMeansErrors, RowsThatAreNotFinite) {
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16})
    for (const int threads : {1, 4}) {
      Rows data(support::generate(Kind::normal, 20'000, 3, 25), type);
      for (const std::size_t row : {19'999UL, 9000UL, 8999UL}) {
        if (type == ElementType::f32)
          data.put(row, 2, row == 9000 ? std::numeric_limits<float>::infinity() : std::nanf(""));
        else
          data.put(row, 2, std::uint16_t{0xFFFF});  // a NaN of both
        const auto error =
            support::error_from([&] { train_kmeans(Context::cpu({.threads = threads}), data, 2); });
        ASSERT_TRUE(error.has_value());
        EXPECT_EQ(error->code(), ErrorCode::invalid_argument);
        EXPECT_NE(std::string(error->what()).find(fmt::format(" row {} ", row)), std::string::npos)
            << error->what();
      }
    }
  Rows initial(support::generate(Kind::normal, 2, 3, 26), ElementType::f32);
  initial.put(1, 0, std::nanf(""));
  expect_refused(Rows(support::generate(Kind::normal, 9, 3, 26), ElementType::f32), 2, {.initial = initial},
                 "initial centroid 1");
}

}  // namespace
}  // namespace nearwise
