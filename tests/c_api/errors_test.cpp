// Errors of the C interface: nothing is thrown, nothing is written, and the message says what was expected.
#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "c_api/cases.h"
#include "io/temporary_folder.h"
#include "nearwise/exact.h"
#include "nearwise/storage.h"

namespace nearwise {
namespace {

using namespace testing_c;

const float numbers[] = {0, 1, 5, 2};

class CErrors : public ::testing::Test {
 protected:
  // Fails, and leaves the outputs as they are.
  std::string knn_fails(nearwise_status expected, const nearwise_rows* queries, const nearwise_rows* base,
                        std::size_t k, const nearwise_knn_options* options = nullptr) {
    std::int64_t ids[8] = {-7, -7, -7, -7, -7, -7, -7, -7};
    float distances[8] = {-7, -7, -7, -7, -7, -7, -7, -7};
    std::string message =
        message_of(expected, nearwise_knn(context_.get(), queries, base, k, options, ids, distances));
    for (std::size_t i = 0; i < 8; ++i) EXPECT_TRUE(ids[i] == -7 && distances[i] == -7);
    return message;
  }

  const OwnedContext context_ = make_context();
  const nearwise_rows good_ = {numbers, NEARWISE_F32, 4, 1, 0};
};

TEST_F(CErrors, NullArguments) {
  std::int64_t id = 0;
  constexpr nearwise_status bad = NEARWISE_INVALID_ARGUMENT;
  EXPECT_EQ(message_of(bad, nearwise_knn(nullptr, &good_, &good_, 1, nullptr, &id, nullptr)),
            "nearwise_knn: context must not be NULL");
  EXPECT_EQ(message_of(bad, nearwise_knn(context_.get(), nullptr, &good_, 1, nullptr, &id, nullptr)),
            "nearwise_knn: queries must not be NULL");
  EXPECT_EQ(message_of(bad, nearwise_knn(context_.get(), &good_, nullptr, 1, nullptr, &id, nullptr)),
            "nearwise_knn: base must not be NULL");
  EXPECT_EQ(message_of(bad, nearwise_knn(context_.get(), &good_, &good_, 1, nullptr, nullptr, nullptr)),
            "nearwise_knn: ids must not be NULL");
  EXPECT_EQ(
      message_of(bad, nearwise_knn_graph(context_.get(), &good_, 1, nullptr, nullptr, nullptr, nullptr)),
      "nearwise_knn_graph: ids must not be NULL");
  EXPECT_EQ(message_of(bad, nearwise_kmeans(context_.get(), &good_, 1, nullptr, nullptr, nullptr)),
            "nearwise_kmeans: centroids must not be NULL");
  nearwise_index* index = nullptr;
  EXPECT_EQ(message_of(bad, nearwise_index_build(context_.get(), &good_, nullptr, nullptr, &index)),
            "nearwise_index_build: options must not be NULL");
  nearwise_index_options options = {};
  options.size = sizeof options;
  options.kind = NEARWISE_IVF_FLAT;
  EXPECT_EQ(message_of(bad, nearwise_index_build(context_.get(), &good_, nullptr, &options, nullptr)),
            "nearwise_index_build: index must not be NULL");
  EXPECT_EQ(message_of(bad, nearwise_index_open(context_.get(), nullptr, &index)),
            "nearwise_index_open: path must not be NULL");
  EXPECT_EQ(message_of(bad, nearwise_index_save(nullptr, "index.nw")),
            "nearwise_index_save: index must not be NULL");
  EXPECT_EQ(message_of(bad, nearwise_index_search(nullptr, context_.get(), &good_, 1, nullptr, &id, nullptr)),
            "nearwise_index_search: index must not be NULL");
  EXPECT_EQ(message_of(bad, nearwise_index_add(nullptr, context_.get(), &good_, nullptr, 0, nullptr)),
            "nearwise_index_add: index must not be NULL");
  EXPECT_EQ(message_of(bad, nearwise_index_remove(nullptr, context_.get(), &id, 1, nullptr)),
            "nearwise_index_remove: index must not be NULL");
  EXPECT_EQ(message_of(bad, nearwise_index_describe(nullptr, nullptr)),
            "nearwise_index_describe: index must not be NULL");
  EXPECT_EQ(message_of(bad, nearwise_context_cancel(nullptr)),
            "nearwise_context_cancel: context must not be NULL");
  EXPECT_EQ(message_of(bad, nearwise_context_memory(nullptr, nullptr, nullptr)),
            "nearwise_context_memory: context must not be NULL");
  nearwise_index_destroy(nullptr);
}

TEST_F(CErrors, Rows) {
  constexpr nearwise_status bad = NEARWISE_INVALID_ARGUMENT;
  nearwise_rows rows = good_;
  rows.data = nullptr;
  EXPECT_EQ(knn_fails(bad, &rows, &good_, 1), "nearwise_knn: queries: data must not be NULL");
  rows = good_;
  rows.type = 9;
  EXPECT_EQ(knn_fails(bad, &good_, &rows, 1),
            "nearwise_knn: base: an element type from 0 to 4 expected, got 9");
  rows = good_;
  rows.dim = 2;
  rows.rows = 2;
  EXPECT_NE(knn_fails(bad, &rows, &good_, 1).find("dimension"), std::string::npos);
  rows.stride_bytes = 4;
  EXPECT_EQ(knn_fails(bad, &rows, &rows, 1),
            "nearwise_knn: queries: stride_bytes must be at least the 8 of a vector, got 4");
  rows = good_;
  rows.dim = std::numeric_limits<std::size_t>::max() / 2;
  EXPECT_NE(knn_fails(bad, &rows, &good_, 1).find("does not fit"), std::string::npos);
  rows = good_;
  rows.rows = std::numeric_limits<std::size_t>::max() / 2;
  EXPECT_NE(knn_fails(bad, &rows, &good_, 1).find("does not fit"), std::string::npos);
  const float odd[] = {0, std::numeric_limits<float>::quiet_NaN()};
  rows = {odd, NEARWISE_F32, 2, 1, 0};
  EXPECT_NE(knn_fails(bad, &good_, &rows, 1).find("1"), std::string::npos);
  EXPECT_NE(knn_fails(bad, &good_, &good_, 5).find("k"), std::string::npos);
  EXPECT_NE(knn_fails(bad, &good_, &good_, 0).find("k"), std::string::npos);
}

TEST_F(CErrors, Options) {
  constexpr nearwise_status bad = NEARWISE_INVALID_ARGUMENT;
  nearwise_knn_options options = {
      .size = sizeof options, .metric = 4, .exclude_self = 0, .pad = 0, .filter = nullptr};
  EXPECT_EQ(knn_fails(bad, &good_, &good_, 1, &options),
            "nearwise_knn: a metric from 0 to 3 expected, got 4");
  options.metric = 0;
  options.size = 0;
  EXPECT_EQ(knn_fails(bad, &good_, &good_, 1, &options),
            "nearwise_knn: the size of a struct must be its sizeof, " + std::to_string(sizeof options) +
                " in this version, got 0");
  options.size = std::size_t{1} << 40;
  EXPECT_NE(knn_fails(bad, &good_, &good_, 1, &options).find("sizeof"), std::string::npos);
  options.size = sizeof options;
  nearwise_filter filter = {0, 0, nullptr, nullptr};
  options.filter = &filter;
  EXPECT_EQ(knn_fails(bad, &good_, &good_, 1, &options),
            "nearwise_knn: a filter of kind 1, 2 or 3 expected, got 0");
  filter = {NEARWISE_FILTER_DENY, 3, nullptr, nullptr};
  EXPECT_EQ(knn_fails(bad, &good_, &good_, 1, &options),
            "nearwise_knn: the ids of a filter must not be NULL");
  nearwise_context_options device = {};
  device.size = sizeof device;
  device.device = "abacus";
  nearwise_context* made = nullptr;
  EXPECT_NE(message_of(bad, nearwise_context_create(&device, &made)).find("abacus"), std::string::npos);
  device.device = nullptr;
  device.threads = -1;
  message_of(bad, nearwise_context_create(&device, &made));
  EXPECT_EQ(made, nullptr);
}

TEST_F(CErrors, OptionsOfAnotherKindOfIndex) {
  const support::Problem problem = problem_of();
  const nearwise_rows rows = c_rows(problem.base);
  nearwise_index_options options = {};
  nearwise_index* index = nullptr;
  const auto refused = [&](nearwise_index_kind kind) {
    options.size = sizeof options;
    options.kind = kind;
    std::string message = message_of(NEARWISE_INVALID_ARGUMENT,
                                     nearwise_index_build(context_.get(), &rows, nullptr, &options, &index));
    EXPECT_EQ(index, nullptr);
    options = {};
    return message;
  };
  EXPECT_EQ(refused(0), "nearwise_index_build: a kind from 1 to 4 expected, got 0");
  options.degree = 32;
  EXPECT_EQ(refused(NEARWISE_IVF_FLAT), "nearwise_index_build: degree is an option of NEARWISE_GRAPH");
  options.graph_recall = 0.5;
  EXPECT_EQ(refused(NEARWISE_IVF_PQ), "nearwise_index_build: graph_recall is an option of NEARWISE_GRAPH");
  options.lists = 5;
  EXPECT_EQ(refused(NEARWISE_GRAPH), "nearwise_index_build: lists is an option of inverted files");
  options.bits = 4;
  EXPECT_EQ(refused(NEARWISE_IVF_LSQ), "nearwise_index_build: bits is an option of NEARWISE_IVF_PQ");
  options.code_bytes = 4;
  EXPECT_NE(refused(NEARWISE_IVF_FLAT).find("code_bytes"), std::string::npos);
  options.vectors = NEARWISE_KEEP_FILE;
  EXPECT_NE(refused(NEARWISE_IVF_PQ).find("vector_file"), std::string::npos);
  options.vectors = 5;
  EXPECT_NE(refused(NEARWISE_IVF_PQ).find("vectors from 0 to 4"), std::string::npos);
  options.target_recall = 1.5;
  EXPECT_NE(refused(NEARWISE_IVF_PQ).find("target_recall"), std::string::npos);
  options.target_recall = 0.5;
  options.no_calibration = 1;
  EXPECT_NE(refused(NEARWISE_GRAPH).find("no_calibration"), std::string::npos);

  options = {};
  options.size = sizeof options;
  options.kind = NEARWISE_IVF_FLAT;
  options.no_calibration = 1;
  ASSERT_EQ(nearwise_index_build(context_.get(), &rows, nullptr, &options, &index), NEARWISE_OK);
  const OwnedIndex owned(index);
  nearwise_search_options beam = {};
  beam.size = sizeof beam;
  beam.beam = 50;
  std::int64_t ids[20] = {};
  const nearwise_rows queries = c_rows(problem.queries);
  EXPECT_EQ(message_of(NEARWISE_INVALID_ARGUMENT,
                       nearwise_index_search(index, context_.get(), &queries, 1, &beam, ids, nullptr)),
            "nearwise_index_search: beam is an option of graph indexes");
  const support::Problem narrow = problem_of(ElementType::f32, 10, 5);
  const nearwise_rows other = c_rows(narrow.base);
  message_of(NEARWISE_INVALID_ARGUMENT,
             nearwise_index_add(index, context_.get(), &other, nullptr, NEARWISE_REFUSE, nullptr));
}

TEST_F(CErrors, Files) {
  const testing_io::TemporaryFolder folder;
  nearwise_index* index = nullptr;
  const std::string missing = folder / "missing.nw";
  EXPECT_NE(message_of(NEARWISE_NOT_FOUND, nearwise_index_open(context_.get(), missing.c_str(), &index))
                .find("missing.nw"),
            std::string::npos);
  const std::string damaged = folder / "damaged.nw";
  std::ofstream(damaged) << "no container";
  message_of(NEARWISE_CORRUPT, nearwise_index_open(context_.get(), damaged.c_str(), &index));
  const std::string other = folder / "neighbors.nw";
  const float row[] = {0, 1};
  const MatrixView<const float> rows(row, 2, 1);
  save({.neighbors = knn(same_context(), rows, rows, 1), .metric = Metric::sqeuclidean, .provenance = {}},
       other);
  EXPECT_EQ(message_of(NEARWISE_INVALID_ARGUMENT, nearwise_index_open(context_.get(), other.c_str(), &index)),
            "nearwise_index_open: an index expected, " + other + " is a file of neighbors");
  EXPECT_EQ(index, nullptr);

  const support::Problem problem = problem_of();
  const nearwise_rows base = c_rows(problem.base);
  nearwise_index_options options = {};
  options.size = sizeof options;
  options.kind = NEARWISE_IVF_FLAT;
  options.no_calibration = 1;
  ASSERT_EQ(nearwise_index_build(context_.get(), &base, nullptr, &options, &index), NEARWISE_OK);
  const OwnedIndex owned(index);
  const std::string nowhere = folder / "nowhere" / "index.nw";
  message_of(NEARWISE_CANNOT_CREATE, nearwise_index_save(index, nowhere.c_str()));
}

TEST_F(CErrors, MemoryLimit) {
  const OwnedContext small = make_context(1000);
  const support::Problem problem = problem_of();
  const nearwise_rows base = c_rows(problem.base);
  nearwise_index_options options = {};
  options.size = sizeof options;
  options.kind = NEARWISE_GRAPH;
  nearwise_index* index = nullptr;
  message_of(NEARWISE_OUT_OF_MEMORY, nearwise_index_build(small.get(), &base, nullptr, &options, &index));
  EXPECT_EQ(index, nullptr);
  Found found(1500, 100);
  message_of(NEARWISE_OUT_OF_MEMORY,
             nearwise_knn(small.get(), &base, &base, 100, nullptr, found.ids.data(), found.distances.data()));
  EXPECT_EQ(found.ids[0], -7);
}

}  // namespace
}  // namespace nearwise
