// Graph indexes: recall, determinism, ids, filters, ranges, errors.
#include "nearwise/graph_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "graph_index/graph_filter.h"
#include "graph_index/search_graph.h"
#include "io/temporary_folder.h"
#include "nearwise/machine.h"
#include "nearwise/searchable.h"
#include "support/error_of.h"
#include "support/ivf_cases.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::Kind;
using support::make_problem;
using support::one_thread;
using support::Problem;
using support::same;

static_assert(Searchable<GraphIndex>);

// Share of results that are no farther than the k-th exact one.
double recall_of(const Neighbors& found, const RowsView& queries, const RowsView& base, Metric metric) {
  const std::size_t k = found.ids.cols();
  const oracle::Answer exact = oracle::knn(queries, base, k, metric);
  std::size_t hits = 0;
  for (std::size_t query = 0; query < found.ids.rows(); ++query)
    for (std::size_t i = 0; i < k; ++i) {
      const float farthest = exact.distances[query * k + k - 1];
      const float distance = found.distances(query, i);
      hits += found.ids(query, i) != no_id &&
              (metric == Metric::inner_product ? distance >= farthest : distance <= farthest);
    }
  return static_cast<double>(hits) / static_cast<double>(found.ids.rows() * k);
}

struct Case {
  std::string name;
  Kind kind;
  std::size_t dim;
  Metric metric;
  ElementType type = ElementType::f32;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"normal", Kind::normal, 12, Metric::sqeuclidean},
      {"bytes", Kind::normal, 12, Metric::sqeuclidean, ElementType::u8},
      {"signed_bytes", Kind::normal, 12, Metric::euclidean, ElementType::i8},
      {"half", Kind::normal, 12, Metric::sqeuclidean, ElementType::f16},
      {"cosine", Kind::normal, 12, Metric::cosine},
      {"cosine_of_bytes", Kind::normal, 12, Metric::cosine, ElementType::u8},
      {"inner_product", Kind::normal, 12, Metric::inner_product},
      {"islands", Kind::near_duplicates, 12, Metric::sqeuclidean},
      {"duplicates", Kind::exact_duplicates, 12, Metric::sqeuclidean},
      {"integers", Kind::integers, 3, Metric::sqeuclidean},
      {"one_dimension", Kind::normal, 1, Metric::sqeuclidean},
      {"heavy_tails", Kind::mixed_ranges, 8, Metric::cosine},
      {"zero_rows", Kind::zero_rows, 8, Metric::cosine},
      {"sparse", Kind::sparse, 30, Metric::sqeuclidean},
      {"identical", Kind::identical, 5, Metric::sqeuclidean},
      {"offset", Kind::offset_1e4, 8, Metric::sqeuclidean},
  };
  return all;
}

Problem problem_of(const Case& tested, std::size_t rows = 2000, std::size_t queries = 100) {
  return make_problem({.kind = tested.kind,
                       .rows = rows,
                       .queries = queries,
                       .dim = tested.dim,
                       .base_type = tested.type,
                       .query_type = tested.type,
                       .seed = 61});
}

class GraphIndexData : public testing::TestWithParam<std::size_t> {
 protected:
  const Case& tested() const { return cases()[GetParam()]; }
};
INSTANTIATE_TEST_SUITE_P(Data, GraphIndexData, testing::Range<std::size_t>(0, cases().size()),
                         [](const auto& instance) { return cases()[instance.param].name; });

TEST_P(GraphIndexData, FindsTheTargetRecall) {
  const Problem problem = problem_of(tested());
  GraphIndex index = GraphIndex::build(one_thread(), problem.base, {.metric = tested().metric}, std::nullopt);
  for (const double target : {0.9, 0.99}) {
    const GraphCalibration found = index.calibrate(one_thread(), {.target_recall = target, .sample = 500});
    EXPECT_EQ(index.calibration(), found);
    EXPECT_TRUE(found.reached()) << found.recall.value << " " << found.recall_of_100.value;
    for (const std::size_t k : {1UL, 10UL, 100UL}) {
      const Neighbors neighbors = index.search(one_thread(), problem.queries, k);
      // 100 queries: the error of 1,000 draws.
      EXPECT_GE(recall_of(neighbors, problem.queries, problem.base, tested().metric), target - 0.025)
          << "target " << target << ", k " << k << ", beam " << index.beam(k);
    }
  }
}

TEST_P(GraphIndexData, ReportsTheDistancesOfExactSearch) {
  const Problem problem = problem_of(tested(), 500, 20);
  const GraphIndex index = GraphIndex::build(one_thread(), problem.base, {.metric = tested().metric});
  const Neighbors found = index.search(one_thread(), problem.queries, 5);
  const oracle::Answer all = oracle::knn(problem.queries, problem.base, 500, tested().metric);
  for (std::size_t query = 0; query < 20; ++query)
    for (std::size_t i = 0; i < 5; ++i) {
      const auto row = all.ids.begin() + static_cast<std::ptrdiff_t>(query * 500);
      const auto place = std::find(row, row + 500, found.ids(query, i)) - row;
      ASSERT_LT(place, 500);
      EXPECT_EQ(found.distances(query, i), all.distances[query * 500 + static_cast<std::size_t>(place)]);
    }
}

template <typename Work>
std::string message_of(const Work& work) {
  return support::error_of(work).what();
}

std::string bytes_of(const GraphIndex& index) {
  const testing_io::TemporaryFolder folder;  // tests run at the same time
  save(index, folder / "index.nw");
  std::ifstream file(folder / "index.nw", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_P(GraphIndexData, ThreadsAndInstructionSetsGiveTheSameBytes) {
  const Problem problem = problem_of(tested(), 300, 10);
  const GraphIndexOptions options = {.metric = tested().metric, .degree = 16};
  const GraphIndex first = GraphIndex::build(Context::cpu({.threads = 1}), problem.base, options);
  const std::string expected = bytes_of(first);
  for (const int threads : {2, 3, 8})
    EXPECT_TRUE(bytes_of(GraphIndex::build(Context::cpu({.threads = threads}), problem.base, options)) ==
                expected)
        << threads;
  const oracle::Answer answers =
      support::as_expected(first.search(Context::cpu({.threads = 1}), problem.queries, 10));
  for (const std::string& set : instruction_sets()) {
    const Context context = Context::cpu({.threads = 1, .isa = set});
    EXPECT_TRUE(bytes_of(GraphIndex::build(context, problem.base, options)) == expected) << set;
    EXPECT_TRUE(same(answers, first.search(context, problem.queries, 10))) << set;
  }
}

TEST_P(GraphIndexData, EveryRowCanBeReached) {
  const Problem problem = problem_of(tested(), 1000, 1);
  const GraphIndex index =
      GraphIndex::build(one_thread(), problem.base, {.metric = tested().metric, .degree = 16}, std::nullopt);
  const Neighbors all = graph_index::search_rows(one_thread(), GraphIndexInternals::state_of(index).graph,
                                                 problem.queries, {.k = 1000, .beam = 1000});
  std::vector<Id> ids(all.ids.data(), all.ids.data() + 1000);
  std::ranges::sort(ids);
  for (std::size_t row = 0; row < 1000; ++row) ASSERT_EQ(ids[row], static_cast<Id>(row));
}

const Problem& plain() {
  static const Problem made = support::clustered(2000, 50, 10, 71);
  return made;
}

const GraphIndex& plain_index() {
  static const GraphIndex index = GraphIndex::build(one_thread(), plain().base);
  return index;
}

TEST(GraphIndex, AFileGivesTheSameIndex) {
  const testing_io::TemporaryFolder folder;
  const std::filesystem::path path = folder / "index.nw";
  save(plain_index(), path);
  const GraphIndex loaded = load_graph_index(one_thread(), path);
  EXPECT_EQ(loaded.size(), 2000U);
  EXPECT_EQ(loaded.calibration(), plain_index().calibration());
  EXPECT_EQ(loaded.beam(50), plain_index().beam(50));
  EXPECT_TRUE(same(support::as_expected(plain_index().search(one_thread(), plain().queries, 10)),
                   loaded.search(one_thread(), plain().queries, 10)));
  EXPECT_TRUE(bytes_of(loaded) == bytes_of(plain_index()));
}

TEST(GraphIndex, IdsOfTheUsersAreReturnedAndFound) {
  std::vector<Id> ids(2000);
  for (std::size_t row = 0; row < ids.size(); ++row) ids[row] = static_cast<Id>((row * 7919) % 2000) * 1000;
  const GraphIndex index = GraphIndex::build(one_thread(), plain().base, {.ids = ids});
  const Neighbors found = index.search(one_thread(), plain().base, 1, {.beam = 2000});
  for (std::size_t row = 0; row < ids.size(); ++row) {
    EXPECT_EQ(found.distances(row, 0), 0);
    EXPECT_LE(found.ids(row, 0), ids[row]);  // or a duplicate with a lower id
  }
  EXPECT_TRUE(index.contains(ids[3]));
  EXPECT_FALSE(index.contains(17));
  Matrix<float> vector(1, 10);
  index.get(std::span(ids).subspan(3, 1), vector.view());
  for (std::size_t i = 0; i < 10; ++i)
    EXPECT_EQ(vector(0, i), reinterpret_cast<const float*>(static_cast<RowsView>(plain().base).row(3))[i]);
  std::vector<Id> sorted = ids;
  std::ranges::sort(sorted);
  EXPECT_EQ(index.ids(), sorted);
  const std::vector<Id> allowed = {ids[5], ids[6], 5};
  const Neighbors two = index.search(one_thread(), plain().queries, 3, {.filter = Filter::allow(allowed)});
  for (std::size_t query = 0; query < 50; ++query) {
    EXPECT_TRUE(std::ranges::find(allowed, two.ids(query, 0)) != allowed.end());
    EXPECT_EQ(two.ids(query, 2), no_id);
  }
}

TEST(GraphIndex, AGraphOfNeighboursIsUsed) {
  const KnnGraph graph = build_knn_graph(one_thread(), plain().base, {.degree = 30});
  const GraphIndex index = GraphIndex::from_knn_graph(one_thread(), graph, plain().base);
  EXPECT_TRUE(index.calibration()->reached());
  EXPECT_GE(recall_of(index.search(one_thread(), plain().queries, 10), plain().queries, plain().base,
                      Metric::sqeuclidean),
            0.93);
  // The graph of other vectors.
  const Problem other = support::clustered(2000, 1, 10, 72);
  EXPECT_NE(message_of([&] { GraphIndex::from_knn_graph(one_thread(), graph, other.base); }).find("graph"),
            std::string::npos);
}

TEST(GraphIndex, RangesHoldWhatExactSearchFinds) {
  for (const float radius : {0.5F, 4.0F, 30.0F}) {
    const RangeNeighbors exact = range_search(one_thread(), plain().queries, plain().base, radius);
    const RangeNeighbors found =
        plain_index().range_search(one_thread(), plain().queries, radius, {.beam = 2000});
    EXPECT_EQ(found.offsets, exact.offsets) << radius;
    EXPECT_EQ(found.ids, exact.ids) << radius;
    EXPECT_EQ(found.distances, exact.distances) << radius;
  }
}

TEST(GraphIndex, QueriesOfAnotherKindWidenTheBeam) {
  // Queries far from the vectors: their neighbours are farther apart in the graph.
  const Problem far =
      make_problem({.kind = Kind::offset_1e4, .rows = 1, .queries = 200, .dim = 10, .seed = 73});
  GraphIndex index = GraphIndex::build(one_thread(), plain().base);
  const GraphCalibration found =
      index.calibrate(one_thread(), {.target_recall = 0.95, .queries = far.queries});
  EXPECT_TRUE(found.reached());
  EXPECT_GE(
      recall_of(index.search(one_thread(), far.queries, 10), far.queries, plain().base, Metric::sqeuclidean),
      0.95);
}

TEST(GraphIndex, FewVectorsAreAllFound) {
  for (const std::size_t rows : {1UL, 2UL, 3UL, 17UL, 60UL}) {
    const Problem problem = support::clustered(rows, 5, 4, 74);
    const GraphIndex index = GraphIndex::build(one_thread(), problem.base);
    EXPECT_TRUE(same(oracle::knn(problem.queries, problem.base, rows + 2, Metric::sqeuclidean),
                     index.search(one_thread(), problem.queries, rows + 2)))
        << rows;
  }
}

TEST(GraphIndex, ErrorsNameWhatIsWrong) {
  const GraphIndex& index = plain_index();
  EXPECT_NE(message_of([&] { index.search(one_thread(), plain().queries, 0); }).find("k must be"),
            std::string::npos);
  EXPECT_NE(message_of([&] { index.search(one_thread(), plain().queries, 10, {.beam = 5}); }).find("beam"),
            std::string::npos);
  EXPECT_NE(message_of([&] { GraphIndex::build(one_thread(), plain().base, {.degree = 20}); }).find("degree"),
            std::string::npos);
  const std::vector<Id> twice(2000, 3);
  EXPECT_NE(message_of([&] { GraphIndex::build(one_thread(), plain().base, {.ids = twice}); }).find("twice"),
            std::string::npos);
  Matrix<float> bad(3, 10);
  std::fill_n(bad.data(), 30, 0.0F);
  bad(1, 4) = NAN;
  EXPECT_NE(message_of([&] { GraphIndex::build(one_thread(), bad); }).find("row 1"), std::string::npos);
  EXPECT_NE(message_of([&] { index.search(one_thread(), bad, 1); }).find("query 1"), std::string::npos);
}

TEST(GraphIndex, ConcurrentSearchesOfThreadsAgree) {
  const oracle::Answer expected =
      support::as_expected(plain_index().search(one_thread(), plain().queries, 10));
  std::vector<std::thread> threads;
  std::vector<int> agree(4, 1);
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i)
        agree[t] &= static_cast<int>(static_cast<bool>(
            same(expected, plain_index().search(Context::cpu({.threads = 2}), plain().queries, 10))));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(agree, std::vector<int>(4, 1));
}

TEST(GraphIndex, AMemoryLimitIsKept) {
  const Context context = Context::cpu({.threads = 2, .memory_limit = std::uint64_t{64} << 20});
  const GraphIndex index = GraphIndex::build(context, plain().base);
  EXPECT_LE(context.memory_peak(), std::uint64_t{64} << 20);
  EXPECT_GE(context.memory_used(), 2000U * (10 * 4 + 64 + 48 * 4));
  const Context small = Context::cpu({.threads = 1, .memory_limit = 100'000});
  EXPECT_NE(message_of([&] { GraphIndex::build(small, plain().base); }).find("memory"), std::string::npos);
}

// --- filters ---------------------------------------------------------------------------------------------

TEST(GraphFilterPlan, FewAllowedVectorsAreComparedExactly) {
  const auto plan = [](std::size_t allowed, std::size_t queries) {
    return graph_index::plan_graph_filter({.queries = queries,
                                           .rows = 1'000'000,
                                           .allowed = allowed,
                                           .beam = 50,
                                           .row_bytes = 128,
                                           .code_bytes = 128,
                                           .degree = 48});
  };
  EXPECT_TRUE(plan(1000, 1).exact);
  EXPECT_FALSE(plan(500'000, 1).exact);
  EXPECT_EQ(plan(500'000, 1).beam, 100U);
  // A batch shares the cost of copying allowed vectors together.
  EXPECT_FALSE(plan(100'000, 1).exact);
  EXPECT_TRUE(plan(100'000, 1000).exact);
  // One crossover.
  bool was_exact = true;
  for (std::size_t allowed = 100; allowed <= 1'000'000; allowed += 900) {
    const bool is_exact = plan(allowed, 1).exact;
    EXPECT_TRUE(was_exact || !is_exact) << allowed;
    was_exact = is_exact;
  }
}

TEST(GraphIndex, FiltersKeepTheRecall) {
  const Problem problem =
      make_problem({.kind = Kind::normal, .rows = 4000, .queries = 100, .dim = 8, .seed = 75});
  const GraphIndex index = GraphIndex::build(one_thread(), problem.base, {.degree = 16},
                                             GraphCalibrationOptions{.target_recall = 0.95});
  const RowsView base = problem.base;
  const Random random(76);
  for (const double density : {0.9, 0.5, 0.1, 0.01}) {
    std::vector<std::uint8_t> scattered(4000);
    std::vector<std::uint8_t> half_space(4000);  // correlated with position
    for (std::size_t row = 0; row < 4000; ++row) {
      scattered[row] = random.uniform(row) < density ? 1 : 0;
      half_space[row] = reinterpret_cast<const float*>(base.row(row))[0] > 2 - 4 * density ? 1 : 0;
    }
    for (const auto& mask : {scattered, half_space}) {
      std::vector<Id> rows;
      for (std::size_t row = 0; row < 4000; ++row)
        if (mask[row] != 0) rows.push_back(static_cast<Id>(row));
      if (rows.size() < 20) continue;
      const Neighbors found = index.search(one_thread(), problem.queries, 10, {.filter = Filter::mask(mask)});
      const Neighbors exact = knn(one_thread(), problem.queries, base, 10, {.filter = Filter::mask(mask)});
      std::size_t hits = 0;
      for (std::size_t query = 0; query < 100; ++query)
        for (std::size_t i = 0; i < 10; ++i) {
          ASSERT_NE(found.ids(query, i), no_id);
          ASSERT_TRUE(mask[static_cast<std::size_t>(found.ids(query, i))]);
          hits += found.distances(query, i) <= exact.distances(query, 9);
        }
      EXPECT_GE(hits, 930U) << density;
    }
  }
}

}  // namespace
}  // namespace nearwise
