// Exact search, k-NN graphs and k-means of the C interface: what the C++ functions return.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "c_api/cases.h"
#include "nearwise/exact.h"
#include "nearwise/graph/knn_graph.h"
#include "nearwise/kmeans.h"
#include "nearwise/machine.h"

namespace nearwise {
namespace {

using namespace testing_c;

class CKnn : public ::testing::TestWithParam<ElementType> {};

TEST_P(CKnn, EqualsThatOfCpp) {
  const support::Problem problem = problem_of(GetParam());
  const OwnedContext context = make_context();
  const nearwise_rows queries = c_rows(problem.queries);
  const nearwise_rows base = c_rows(problem.base);
  for (const Metric metric :
       {Metric::sqeuclidean, Metric::euclidean, Metric::inner_product, Metric::cosine}) {
    const nearwise_knn_options options = {.size = sizeof options,
                                          .metric = static_cast<nearwise_metric>(metric),
                                          .exclude_self = 0,
                                          .pad = 0,
                                          .filter = nullptr};
    Found found(20, 5);
    ASSERT_EQ(
        nearwise_knn(context.get(), &queries, &base, 5, &options, found.ids.data(), found.distances.data()),
        NEARWISE_OK)
        << nearwise_last_error();
    expect_same(knn(same_context(), problem.queries, problem.base, 5, {.metric = metric}), found);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CKnn,
                         ::testing::Values(ElementType::f32, ElementType::f16, ElementType::bf16,
                                           ElementType::u8, ElementType::i8),
                         [](const auto& instance) { return std::string(name(instance.param)); });

TEST(CKnnOptions, DefaultsStridesAndMissingDistances) {
  const float data[] = {0, 9, 1, 9, 5, 9};  // the second column is a gap
  const nearwise_rows base = {data, NEARWISE_F32, 3, 1, 2 * sizeof(float)};
  const nearwise_rows dense = {data, NEARWISE_F32, 3, 2, 0};
  const OwnedContext context = make_context();
  std::int64_t ids[3] = {};
  ASSERT_EQ(nearwise_knn(context.get(), &base, &base, 1, nullptr, ids, nullptr), NEARWISE_OK);
  EXPECT_EQ(ids[2], 2);
  const nearwise_knn_options others = {
      .size = sizeof others, .metric = 0, .exclude_self = 1, .pad = 0, .filter = nullptr};
  float distances[3] = {};
  ASSERT_EQ(nearwise_knn(context.get(), &base, &base, 1, &others, ids, distances), NEARWISE_OK);
  EXPECT_EQ(ids[2], 1);
  EXPECT_EQ(distances[2], 16);
  ASSERT_EQ(nearwise_knn(context.get(), &dense, &dense, 1, &others, ids, distances), NEARWISE_OK);
  EXPECT_EQ(distances[2], 16);
}

TEST(CKnnOptions, PadAndFilters) {
  const float data[] = {0, 1, 5};
  const nearwise_rows base = {data, NEARWISE_F32, 3, 1, 0};
  const nearwise_rows query = {data, NEARWISE_F32, 1, 1, 0};
  const OwnedContext context = make_context();
  Found found(1, 4);
  nearwise_knn_options options = {
      .size = sizeof options, .metric = 0, .exclude_self = 0, .pad = 1, .filter = nullptr};
  ASSERT_EQ(nearwise_knn(context.get(), &query, &base, 4, &options, found.ids.data(), found.distances.data()),
            NEARWISE_OK);
  EXPECT_EQ(found.ids, (std::vector<std::int64_t>{0, 1, 2, -1}));
  EXPECT_TRUE(std::isinf(found.distances[3]));

  const std::uint8_t mask[] = {0, 1, 1};
  const std::int64_t one[] = {1};
  const auto nearest = [&](const nearwise_filter& filter) {
    options.filter = &filter;
    std::int64_t id = -7;
    EXPECT_EQ(nearwise_knn(context.get(), &query, &base, 1, &options, &id, nullptr), NEARWISE_OK)
        << nearwise_last_error();
    return id;
  };
  EXPECT_EQ(nearest({NEARWISE_FILTER_MASK, 3, mask, nullptr}), 1);
  EXPECT_EQ(nearest({NEARWISE_FILTER_MASK, 1, mask, nullptr}), -1);
  EXPECT_EQ(nearest({NEARWISE_FILTER_ALLOW, 1, nullptr, one}), 1);
  EXPECT_EQ(nearest({NEARWISE_FILTER_DENY, 1, nullptr, one}), 0);
}

TEST(CKnnOptions, OlderAndNewerHeaders) {
  const float data[] = {0, 1, 5};
  const nearwise_rows base = {data, NEARWISE_F32, 3, 1, 0};
  const OwnedContext context = make_context();
  std::int64_t ids[3] = {};
  // An older header ends before `exclude_self`: whatever follows in memory is not read.
  const nearwise_knn_options older = {.size = offsetof(nearwise_knn_options, exclude_self),
                                      .metric = 0,
                                      .exclude_self = 1,
                                      .pad = 1,
                                      .filter = nullptr};
  ASSERT_EQ(nearwise_knn(context.get(), &base, &base, 1, &older, ids, nullptr), NEARWISE_OK);
  EXPECT_EQ(ids[2], 2);

  struct Newer {
    nearwise_knn_options known;
    std::uint64_t later;
  } newer = {{.size = sizeof(Newer), .metric = 0, .exclude_self = 1, .pad = 0, .filter = nullptr}, 0};
  ASSERT_EQ(nearwise_knn(context.get(), &base, &base, 1, &newer.known, ids, nullptr), NEARWISE_OK);
  EXPECT_EQ(ids[2], 1);
  newer.later = 1;
  EXPECT_EQ(message_of(NEARWISE_UNSUPPORTED,
                       nearwise_knn(context.get(), &base, &base, 1, &newer.known, ids, nullptr)),
            "nearwise_knn: the options have fields that nearwise " + version() + " does not know");
}

TEST(CKnnGraph, EqualsThatOfCpp) {
  const support::Problem problem = problem_of();
  const OwnedContext context = make_context();
  const nearwise_rows rows = c_rows(problem.base);
  const nearwise_knn_graph_options options = {
      .size = sizeof options, .metric = NEARWISE_COSINE, .target_recall = 0.9};
  nearwise_graph_report report = {};
  report.size = sizeof report;
  Found found(1500, 6);
  ASSERT_EQ(nearwise_knn_graph(context.get(), &rows, 6, &options, found.ids.data(), found.distances.data(),
                               &report),
            NEARWISE_OK)
      << nearwise_last_error();
  const KnnGraph graph = build_knn_graph(same_context(), problem.base,
                                         {.degree = 6, .metric = Metric::cosine, .target_recall = 0.9});
  expect_same(graph.neighbors, found);
  EXPECT_EQ(report.recall, graph.report.recall.value);
  EXPECT_EQ(report.recall_low, graph.report.recall.low);
  EXPECT_EQ(report.recall_high, graph.report.recall.high);
  EXPECT_EQ(report.reached, 1);
  EXPECT_EQ(nearwise_knn_graph(context.get(), &rows, 6, nullptr, found.ids.data(), nullptr, nullptr),
            NEARWISE_OK);
}

TEST(CKMeans, EqualsThatOfCpp) {
  const support::Problem problem = problem_of();
  const OwnedContext context = make_context();
  const nearwise_rows rows = c_rows(problem.base);
  const nearwise_kmeans_options options = {
      .size = sizeof options, .metric = NEARWISE_SQEUCLIDEAN, .iterations = 5, .balance = 1.5};
  std::vector<float> centroids(8 * 16);
  std::vector<std::size_t> sizes(8);
  ASSERT_EQ(nearwise_kmeans(context.get(), &rows, 8, &options, centroids.data(), sizes.data()), NEARWISE_OK)
      << nearwise_last_error();
  const KMeans trained = train_kmeans(same_context(), problem.base, 8, {.iterations = 5, .balance = 1.5});
  EXPECT_EQ(std::memcmp(centroids.data(), trained.centroids.data(), centroids.size() * sizeof(float)), 0);
  EXPECT_EQ(sizes, trained.sizes);
  EXPECT_EQ(nearwise_kmeans(context.get(), &rows, 8, nullptr, centroids.data(), nullptr), NEARWISE_OK);
}

TEST(CContext, VersionMemoryAndCancelling) {
  EXPECT_EQ(nearwise_version(), version());
  const OwnedContext context = make_context();
  const float data[] = {0, 1, 5};
  const nearwise_rows base = {data, NEARWISE_F32, 3, 1, 0};
  std::int64_t ids[3] = {};
  ASSERT_EQ(nearwise_knn(context.get(), &base, &base, 1, nullptr, ids, nullptr), NEARWISE_OK);
  std::uint64_t used = 7;
  std::uint64_t peak = 0;
  EXPECT_EQ(nearwise_context_memory(context.get(), &used, &peak), NEARWISE_OK);
  EXPECT_EQ(used, 0U);
  EXPECT_GT(peak, 0U);
  EXPECT_EQ(nearwise_context_memory(context.get(), nullptr, nullptr), NEARWISE_OK);
  EXPECT_EQ(nearwise_context_cancel(context.get()), NEARWISE_OK);
  message_of(NEARWISE_CANCELLED, nearwise_knn(context.get(), &base, &base, 1, nullptr, ids, nullptr));
  nearwise_context* cpu = nullptr;
  EXPECT_EQ(nearwise_context_create(nullptr, &cpu), NEARWISE_OK);
  nearwise_context_destroy(cpu);
  nearwise_context_destroy(nullptr);
}

TEST(CContext, EveryThreadHasItsOwnMessage) {
  EXPECT_NE(nearwise_context_create(nullptr, nullptr), NEARWISE_OK);
  const std::string here = nearwise_last_error();
  std::string there = "?";
  std::thread([&there] { there = nearwise_last_error(); }).join();
  EXPECT_EQ(there, "");
  EXPECT_EQ(here, "nearwise_context_create: context must not be NULL");
  EXPECT_EQ(nearwise_last_error(), here);
}

}  // namespace
}  // namespace nearwise
