// Sharded and Replicated inverted files over several contexts of the CPU: the answer of the whole index.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "io/temporary_folder.h"
#include "nearwise/sharded.h"
#include "nearwise/vector_file.h"
#include "support/error_of.h"
#include "support/knn_cases.h"
#include "support/range_cases.h"

namespace nearwise {
namespace {

using support::error_of;
using support::Problem;

std::vector<Context> some_contexts(std::size_t count) {
  std::vector<Context> contexts;
  for (std::size_t i = 0; i < count; ++i) contexts.push_back(Context::cpu({.threads = 1}));
  return contexts;
}

const Context& one_thread() {
  static const Context context = Context::cpu({.threads = 1, .seed = 3});
  return context;
}

// Many ties, so that the order of parts would show.
Problem with_duplicates(ElementType type = ElementType::f32) {
  return support::make_problem({.kind = support::Kind::exact_duplicates,
                                .rows = 400,
                                .queries = 23,
                                .dim = 11,
                                .base_type = type,
                                .query_type = type,
                                .base_layout = support::Layout::dense,
                                .seed = 17});
}

std::vector<std::byte> bytes_of(const Ivf& index) {
  const testing_io::TemporaryFolder folder;
  save(index, folder / "index.nw");
  return testing_io::read_all(folder / "index.nw");
}

void expect_the_whole(const Ivf& index, const Problem& problem) {
  const Context joining = Context::cpu({.threads = 2});
  const std::vector<IvfSearchOptions> searches = {
      {},
      {.probes = 1},
      {.probes = index.lists()},
      {.probes = 3, .rerank = problem.base},
      {.probes = 3, .rerank = problem.base, .candidates = 7},
      {.rerank = problem.base, .candidates = 1000},
  };
  for (const std::size_t devices : {1, 2, 3, 8}) {
    const std::vector<Context> contexts = some_contexts(devices);
    const Sharded<Ivf> sharded = shard_ivf(contexts, index);
    const Replicated<Ivf> replicated = replicate_ivf(contexts, index);
    EXPECT_EQ(sharded.size(), index.size());
    for (const IvfSearchOptions& options : searches)
      for (const std::size_t k : {std::size_t{1}, std::size_t{6}}) {
        SCOPED_TRACE(testing::Message()
                     << devices << " devices, k " << k << ", probes " << options.probes.value_or(0)
                     << ", candidates " << options.candidates.value_or(0));
        const oracle::Answer expected =
            support::as_expected(index.search(one_thread(), problem.queries, k, options));
        EXPECT_TRUE(support::same(expected, sharded.search(joining, problem.queries, k, options)));
        EXPECT_TRUE(support::same(expected, replicated.search(joining, problem.queries, k, options)));
        if (devices % 2 == 0) {
          EXPECT_TRUE(support::same(
              expected,
              shard_and_replicate_ivf(contexts, 2, index).search(joining, problem.queries, k, options)));
        }
      }
    const Neighbors near = index.search(one_thread(), problem.queries, 30, {.probes = index.lists()});
    for (const IvfRangeOptions& options : {IvfRangeOptions(), IvfRangeOptions{.probes = 2}}) {
      const float radius = near.distances(0, 29);
      const RangeNeighbors whole = index.range_search(one_thread(), problem.queries, radius, options);
      EXPECT_FALSE(whole.ids.empty());
      const oracle::RangeAnswer expected = {whole.offsets, whole.ids, whole.distances};
      EXPECT_TRUE(support::same(expected, sharded.range_search(joining, problem.queries, radius, options)));
      EXPECT_TRUE(
          support::same(expected, replicated.range_search(joining, problem.queries, radius, options)));
    }
  }
}

class ShardedIvf : public testing::TestWithParam<Metric> {};
INSTANTIATE_TEST_SUITE_P(Metrics, ShardedIvf, testing::ValuesIn(support::every_metric), support::metric_name);

TEST_P(ShardedIvf, FlatIsTheWhole) {
  const Problem problem = with_duplicates(ElementType::f16);
  Ivf index = Ivf::train(one_thread(), problem.base, {.metric = GetParam(), .lists = 9});
  index.add(one_thread(), problem.base);
  expect_the_whole(index, problem);
}

TEST_P(ShardedIvf, ProductCodesAreTheWhole) {
  const Problem problem = with_duplicates();
  Ivf index = Ivf::train(one_thread(), problem.base,
                         {.metric = GetParam(), .lists = 9, .encoding = Pq{.code_bytes = 2, .bits = 4}});
  index.add(one_thread(), problem.base);
  expect_the_whole(index, problem);
}

// The parts share the file; each holds the row numbers of its own vectors.
TEST(ShardedIvfLinked, VectorsInAFileAreTheWhole) {
  const Problem problem = with_duplicates();
  const testing_io::TemporaryFolder folder;
  VectorWriter writer(folder / "base.fbin", ElementType::f32, RowsView(problem.base).dim());
  writer.append(problem.base);
  writer.commit();
  const Ivf index = Ivf::build(one_thread(), problem.base,
                               {.lists = 9,
                                .encoding = Pq{.code_bytes = 2, .bits = 4},
                                .vectors = VectorStorage::file,
                                .vector_file = folder / "base.fbin"});
  expect_the_whole(index, problem);
  for (const Ivf& part : {index.part(one_thread(), 0, 150), index.part(one_thread(), 150, 250)}) {
    EXPECT_EQ(part.vector_file(), index.vector_file());
    EXPECT_EQ(part.vector_bytes(), sizeof(std::uint32_t));
  }
}

class ShardedIvfCalls : public testing::Test {
 protected:
  ShardedIvfCalls() { index_.add(one_thread(), problem_.base); }

  const Problem problem_ = with_duplicates();
  Ivf index_ =
      Ivf::train(one_thread(), problem_.base, {.lists = 9, .encoding = Pq{.code_bytes = 2, .bits = 4}});
};

TEST_F(ShardedIvfCalls, MoreNeighboursThanRows) {
  const Sharded<Ivf> sharded = shard_ivf(some_contexts(3), index_);
  for (const IvfSearchOptions& options :
       {IvfSearchOptions{.probes = 9}, IvfSearchOptions{.probes = 9, .rerank = problem_.base}})
    EXPECT_TRUE(
        support::same(support::as_expected(index_.search(one_thread(), problem_.queries, 450, options)),
                      sharded.search(one_thread(), problem_.queries, 450, options)));
}

TEST_F(ShardedIvfCalls, PartsMergedInTurnAreTheWholeToTheByte) {
  index_.calibrate(one_thread(), problem_.base, {.queries = 40});
  for (const std::size_t parts : {1, 2, 3, 8, 400}) {
    Ivf merged = index_.empty_copy();
    for (std::size_t part = 0; part < parts; ++part) {
      const std::size_t first = 400 * part / parts;
      merged.merge(one_thread(), index_.part(one_thread(), first, 400 * (part + 1) / parts - first));
    }
    EXPECT_EQ(bytes_of(merged), bytes_of(index_)) << parts;
  }
  EXPECT_EQ(index_.part(one_thread(), 400, 0).size(), 0U);
  EXPECT_EQ(error_of([&] { index_.part(one_thread(), 399, 2); }).code(), ErrorCode::invalid_argument);
}

// Rows under ids of the caller's, divided in a way of the caller's.
TEST_F(ShardedIvfCalls, AnyDivisionOfTheRows) {
  const RowsView base = problem_.base;
  std::vector<Placed<Ivf>> parts;
  for (std::size_t part = 0; part < 3; ++part) {
    parts.push_back({Context::cpu({.threads = 1}), index_.empty_copy()});
    for (std::size_t row = part; row < 400; row += 3)
      parts.back().index.add(one_thread(), base.slice(row, 1), std::array{static_cast<Id>(row)});
  }
  const Sharded<Ivf> sharded(std::move(parts));
  const IvfSearchOptions options = {.probes = 4, .rerank = base, .candidates = 20};
  EXPECT_TRUE(support::same(support::as_expected(index_.search(one_thread(), problem_.queries, 5, options)),
                            sharded.search(one_thread(), problem_.queries, 5, options)));
}

TEST_F(ShardedIvfCalls, CopiesCountOnTheirOwnBudgets) {
  const std::vector<Context> contexts = some_contexts(2);
  {
    const Sharded<Ivf> sharded = shard_ivf(contexts, index_);
    for (const Context& context : contexts) EXPECT_GT(context.memory_used(), 200U * (2 + sizeof(Id)));
  }
  for (const Context& context : contexts) EXPECT_EQ(context.memory_used(), 0U);
  const std::vector<Context> small = {contexts[0], Context::cpu({.threads = 1, .memory_limit = 1})};
  const Error error = error_of([&] { shard_ivf(small, index_); });
  EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
  EXPECT_NE(std::string(error.what()).find("(on cpu, number 2 of 2)"), std::string::npos) << error.what();
}

TEST_F(ShardedIvfCalls, WrongArguments) {
  const std::vector<Context> contexts = some_contexts(3);
  EXPECT_STREQ(error_of([&] { shard_ivf({}, index_); }).what(),
               "Ivf: at least one context is needed, got none");
  EXPECT_STREQ(error_of([&] { shard_and_replicate_ivf(contexts, 2, index_); }).what(),
               "Ivf: the number of contexts must be a multiple of the shards, got 3 and 2");
  EXPECT_STREQ(error_of([&] { Sharded<Ivf>({}); }).what(), "Sharded: at least one index is needed, got none");
  std::vector<Placed<Ivf>> strangers;
  strangers.push_back({one_thread(), index_.empty_copy()});
  strangers.push_back({one_thread(), Ivf::train(one_thread(), problem_.base,
                                                {.lists = 8, .encoding = Pq{.code_bytes = 2, .bits = 4}})});
  EXPECT_STREQ(error_of([&] { Sharded<Ivf>(std::move(strangers)); }).what(),
               "Sharded: all inverted files must have the same quantizers, from one training");

  const Sharded<Ivf> sharded = shard_ivf(contexts, index_);
  const Replicated<Ivf> replicated = replicate_ivf(contexts, index_);
  const RowsView base = problem_.base;
  const auto same_words = [&](std::size_t k, const IvfSearchOptions& options) {
    const std::string words =
        error_of([&] { index_.search(one_thread(), problem_.queries, k, options); }).what();
    EXPECT_EQ(error_of([&] { sharded.search(one_thread(), problem_.queries, k, options); }).what(), words);
    EXPECT_EQ(error_of([&] { replicated.search(one_thread(), problem_.queries, k, options); }).what(), words);
  };
  same_words(0, {});
  same_words(1, {.probes = 10});
  same_words(5, {.rerank = base, .candidates = 4});
  same_words(5, {.rerank = base.slice(0, 399)});
}

TEST_F(ShardedIvfCalls, ReportsProgressAndStopsThreads) {
  std::vector<Progress> reports;
  const Context context = Context::cpu(
      {.threads = 1, .progress = [&](const Progress& progress) { reports.push_back(progress); }});
  const Sharded<Ivf> sharded = shard_ivf(some_contexts(3), index_);
  sharded.search(context, problem_.queries, 2, {.rerank = problem_.base});
  ASSERT_FALSE(reports.empty());
  for (const Progress& report : reports) {
    EXPECT_STREQ(report.operation, "search");
    EXPECT_EQ(report.total, 400U);
  }
  EXPECT_EQ(reports.back().done, 400U);
  context.cancel();
  EXPECT_EQ(error_of([&] { sharded.search(context, problem_.queries, 2); }).code(), ErrorCode::cancelled);
}

}  // namespace
}  // namespace nearwise
