// Indexes of the C interface: the answers, files and changes of the C++ classes.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <optional>

#include "c_api/cases.h"
#include "io/temporary_folder.h"
#include "nearwise/graph_index.h"
#include "nearwise/ivf.h"
#include "nearwise/vector_file.h"

namespace nearwise {
namespace {

using namespace testing_c;
using testing_io::TemporaryFolder;

nearwise_index_options index_options(nearwise_index_kind kind) {
  nearwise_index_options options = {};
  options.size = sizeof options;
  options.kind = kind;
  return options;
}

OwnedIndex build_index(const nearwise_context* context, RowsView rows, const nearwise_index_options& options,
                       const std::int64_t* ids = nullptr) {
  const nearwise_rows given = c_rows(rows);
  nearwise_index* index = nullptr;
  EXPECT_EQ(nearwise_index_build(context, &given, ids, &options, &index), NEARWISE_OK)
      << nearwise_last_error();
  return OwnedIndex(index);
}

Found search_index(const nearwise_index* index, const nearwise_context* context, RowsView queries,
                   std::size_t k, const nearwise_search_options* options = nullptr) {
  const nearwise_rows given = c_rows(queries);
  Found found(queries.rows(), k);
  EXPECT_EQ(
      nearwise_index_search(index, context, &given, k, options, found.ids.data(), found.distances.data()),
      NEARWISE_OK)
      << nearwise_last_error();
  return found;
}

nearwise_index_info describe_index(const nearwise_index* index) {
  nearwise_index_info info = {};
  info.size = sizeof info;
  EXPECT_EQ(nearwise_index_describe(index, &info), NEARWISE_OK) << nearwise_last_error();
  return info;
}

TEST(CIndex, InvertedFilesAreThoseOfCpp) {
  const support::Problem problem = problem_of(ElementType::f32, 400, 8);
  const OwnedContext context = make_context();
  struct Case {
    nearwise_index_kind kind;
    Encoding encoding;
  };
  for (const Case& each : {Case{NEARWISE_IVF_FLAT, Flat()}, Case{NEARWISE_IVF_PQ, Pq{.code_bytes = 8}},
                           Case{NEARWISE_IVF_LSQ, Lsq{.code_bytes = 1}}}) {
    nearwise_index_options options = index_options(each.kind);
    options.metric = NEARWISE_EUCLIDEAN;
    options.lists = 5;
    options.target_recall = 0.8;
    if (each.kind == NEARWISE_IVF_PQ) options.code_bytes = 8;
    if (each.kind == NEARWISE_IVF_LSQ) options.code_bytes = 1;
    const OwnedIndex index = build_index(context.get(), problem.base, options);
    const Ivf expected = Ivf::build(same_context(), problem.base,
                                    {.metric = Metric::euclidean, .lists = 5, .encoding = each.encoding},
                                    CalibrationOptions{.target_recall = 0.8});
    expect_same(expected.search(same_context(), problem.queries, 5),
                search_index(index.get(), context.get(), problem.queries, 5));
    const nearwise_search_options wide = {
        .size = sizeof wide, .probes = 5, .candidates = 40, .beam = 0, .filter = nullptr};
    expect_same(expected.search(same_context(), problem.queries, 5, {.probes = 5, .candidates = 40}),
                search_index(index.get(), context.get(), problem.queries, 5, &wide));
    const nearwise_index_info info = describe_index(index.get());
    EXPECT_EQ(info.kind, each.kind);
    EXPECT_EQ(info.metric, NEARWISE_EUCLIDEAN);
    EXPECT_EQ(info.rows, 400U);
    EXPECT_EQ(info.dim, 8U);
    EXPECT_EQ(info.next_id, 400);
    EXPECT_EQ(info.calibrated, 1);
    EXPECT_EQ(info.reached, expected.calibration()->reached() ? 1 : 0);
    EXPECT_EQ(info.target_recall, 0.8);
    EXPECT_EQ(info.recall, expected.calibration()->recall.value);
    EXPECT_EQ(info.recall_low, expected.calibration()->recall.low);
    EXPECT_EQ(info.recall_high, expected.calibration()->recall.high);
  }
}

TEST(CIndex, GraphIsThatOfCpp) {
  const support::Problem problem = problem_of(ElementType::u8);
  const OwnedContext context = make_context();
  nearwise_index_options options = index_options(NEARWISE_GRAPH);
  options.degree = 32;
  options.target_recall = 0.9;
  const OwnedIndex index = build_index(context.get(), problem.base, options);
  const GraphIndex expected = GraphIndex::build(same_context(), problem.base, {.degree = 32},
                                                GraphCalibrationOptions{.target_recall = 0.9});
  expect_same(expected.search(same_context(), problem.queries, 5),
              search_index(index.get(), context.get(), problem.queries, 5));
  const nearwise_search_options wide = {
      .size = sizeof wide, .probes = 0, .candidates = 0, .beam = 200, .filter = nullptr};
  expect_same(expected.search(same_context(), problem.queries, 5, {.beam = 200}),
              search_index(index.get(), context.get(), problem.queries, 5, &wide));
  EXPECT_EQ(describe_index(index.get()).kind, NEARWISE_GRAPH);
  EXPECT_EQ(describe_index(index.get()).recall, expected.calibration()->recall.value);
}

TEST(CIndex, FilesAreThoseOfCppAndBack) {
  const support::Problem problem = problem_of();
  const OwnedContext context = make_context();
  const TemporaryFolder folder;
  for (const nearwise_index_kind kind : {NEARWISE_IVF_FLAT, NEARWISE_IVF_PQ, NEARWISE_GRAPH}) {
    nearwise_index_options options = index_options(kind);
    options.no_calibration = 1;
    const OwnedIndex index = build_index(context.get(), problem.base, options);
    EXPECT_EQ(describe_index(index.get()).calibrated, 0);
    const std::string path = folder / "index.nw";
    ASSERT_EQ(nearwise_index_save(index.get(), path.c_str()), NEARWISE_OK) << nearwise_last_error();
    const Neighbors expected =
        kind == NEARWISE_GRAPH
            ? load_graph_index(same_context(), path).search(same_context(), problem.queries, 4)
            : load_ivf(same_context(), path).search(same_context(), problem.queries, 4);
    expect_same(expected, search_index(index.get(), context.get(), problem.queries, 4));
    nearwise_index* opened = nullptr;
    ASSERT_EQ(nearwise_index_open(context.get(), path.c_str(), &opened), NEARWISE_OK)
        << nearwise_last_error();
    const OwnedIndex owned(opened);
    EXPECT_EQ(describe_index(opened).kind, kind);
    expect_same(expected, search_index(opened, context.get(), problem.queries, 4));
  }
}

TEST(CIndex, IdsAddRemoveAndFilters) {
  const support::Problem problem = problem_of();
  const OwnedContext context = make_context();
  std::vector<std::int64_t> ids(1000);
  std::iota(ids.begin(), ids.end(), 5000);
  const RowsView first = RowsView(problem.base).slice(0, 1000);
  const RowsView more = RowsView(problem.base).slice(1000, 500);
  for (const nearwise_index_kind kind : {NEARWISE_IVF_FLAT, NEARWISE_GRAPH}) {
    const OwnedIndex index = build_index(context.get(), first, index_options(kind), ids.data());
    EXPECT_EQ(describe_index(index.get()).next_id, 6000);
    EXPECT_EQ(search_index(index.get(), context.get(), first.slice(3, 1), 1).ids[0], 5003);

    const nearwise_rows added_rows = c_rows(more);
    std::size_t added = 0;
    ASSERT_EQ(nearwise_index_add(index.get(), context.get(), &added_rows, nullptr, NEARWISE_REFUSE, &added),
              NEARWISE_OK)
        << nearwise_last_error();
    EXPECT_EQ(added, 500U);
    EXPECT_EQ(describe_index(index.get()).rows, 1500U);
    EXPECT_EQ(search_index(index.get(), context.get(), more.slice(0, 1), 1).ids[0], 6000);

    // Vector 1001 with the id of 1000: refused, left out, or in its place.
    const nearwise_rows again = c_rows(more.slice(1, 1));
    const std::int64_t taken[] = {6000};
    const auto add_again = [&](nearwise_on_duplicate choice) {
      return nearwise_index_add(index.get(), context.get(), &again, taken, choice, &added);
    };
    message_of(NEARWISE_INVALID_ARGUMENT, add_again(NEARWISE_REFUSE));
    EXPECT_EQ(added, 500U);
    EXPECT_EQ(add_again(NEARWISE_SKIP), NEARWISE_OK);
    EXPECT_EQ(added, 0U);
    EXPECT_EQ(add_again(NEARWISE_REPLACE), NEARWISE_OK);
    EXPECT_EQ(added, 1U);
    EXPECT_EQ(message_of(NEARWISE_INVALID_ARGUMENT, add_again(3)),
              "nearwise_index_add: on_duplicate from 0 to 2 expected, got 3");

    const std::int64_t gone[] = {5003, 5003, 9999};
    std::size_t removed = 0;
    ASSERT_EQ(nearwise_index_remove(index.get(), context.get(), gone, 3, &removed), NEARWISE_OK);
    EXPECT_EQ(removed, 1U);
    EXPECT_NE(search_index(index.get(), context.get(), first.slice(3, 1), 1).ids[0], 5003);
    ASSERT_EQ(nearwise_index_remove(index.get(), context.get(), nullptr, 0, nullptr), NEARWISE_OK);

    const std::int64_t allowed[] = {5500, 5501};
    const nearwise_filter filter = {NEARWISE_FILTER_ALLOW, 2, nullptr, allowed};
    const nearwise_search_options options = {
        .size = sizeof options, .probes = 0, .candidates = 0, .beam = 0, .filter = &filter};
    const Found found = search_index(index.get(), context.get(), first.slice(500, 1), 3, &options);
    EXPECT_EQ(found.ids, (std::vector<std::int64_t>{5500, 5501, -1}));
  }
}

TEST(CIndex, VectorFilesAreUsed) {
  const support::Problem problem = problem_of(ElementType::f32, 400);
  const OwnedContext context = make_context();
  const TemporaryFolder folder;
  const std::string path = folder / "base.fbin";
  {
    VectorWriter writer(path, ElementType::f32, 16);
    writer.append(problem.base);
    writer.commit();
  }
  nearwise_index_options options = index_options(NEARWISE_IVF_PQ);
  options.vectors = NEARWISE_KEEP_FILE;
  options.vector_file = path.c_str();
  const OwnedIndex index = build_index(context.get(), problem.base, options);
  const Ivf expected = Ivf::build(same_context(), problem.base,
                                  {.encoding = Pq(), .vectors = VectorStorage::file, .vector_file = path});
  expect_same(expected.search(same_context(), problem.queries, 5),
              search_index(index.get(), context.get(), problem.queries, 5));
}

}  // namespace
}  // namespace nearwise
