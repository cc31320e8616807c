// The recall of changed graph indexes beside that of new ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "graph_index/update/changed_index.h"
#include "nearwise/graph_index.h"

namespace nearwise {
namespace {

using support::build_index;
using support::Content;
using support::expect_content;
using support::ids_from;
using support::Kind;
using support::one_thread;
using support::Problem;

TEST(GraphUpdateRecall, IsThatOfANewIndex) {
  constexpr std::size_t rows = 4000;
  constexpr std::size_t step = 250;
  for (const Kind kind : {Kind::normal, Kind::exact_duplicates}) {
    const Problem problem =
        support::make_problem({.kind = kind, .rows = rows + 8 * step, .queries = 100, .dim = 16, .seed = 33});
    const RowsView pool = problem.base;
    const GraphIndexOptions options = {.degree = 32};
    GraphIndex index = GraphIndex::build(one_thread(), pool.slice(0, rows), options, std::nullopt);
    Content content(pool);
    content.set(ids_from(0, rows), 0);
    for (std::size_t i = 0; i < 8; ++i) {
      const std::vector<Id> gone = ids_from(static_cast<Id>(i), step, 16);
      EXPECT_EQ(index.remove(one_thread(), gone), step);
      content.erase(gone);
      index.add(one_thread(), pool.slice(rows + i * step, step));
      content.set(ids_from(static_cast<Id>(rows + i * step), step), rows + i * step);
    }
    const std::vector<std::byte> all = content.bytes();
    const GraphIndex fresh = GraphIndex::build(one_thread(), content.view(all), options, std::nullopt);
    // Ids of the new index are row numbers: only distances are compared.
    const auto compare = [&] {
      for (const std::size_t beam : {16UL, 64UL, 100UL}) {
        const double recall = support::recall_of(index, content, problem.queries, 10, beam);
        EXPECT_GE(recall, support::recall_of(fresh, content, problem.queries, 10, beam) - 0.01) << beam;
        if (beam != 16) {
          EXPECT_GE(recall, 0.95) << beam;
        }
      }
    };
    compare();
    index.compact(one_thread());
    compare();
  }
}

// A search without a beam of its own finds what it was calibrated for, also when the index has grown.
TEST(GraphUpdateRecall, IsCalibratedAgainAsTheIndexGrows) {
  const Problem problem =
      support::make_problem({.kind = Kind::normal, .rows = 9000, .queries = 200, .dim = 24, .seed = 35});
  const RowsView pool = problem.base;
  GraphIndex index = GraphIndex::build(one_thread(), pool.slice(0, 500), {.degree = 16});
  const std::size_t beam = index.calibration()->beam;
  std::size_t last = beam;
  for (std::size_t first = 500; first < pool.rows(); first += 170) {
    index.add(one_thread(), pool.slice(first, std::min<std::size_t>(170, pool.rows() - first)));
    ASSERT_GE(index.calibration()->beam, last);
    last = index.calibration()->beam;
    EXPECT_EQ(index.calibration()->target_recall, 0.95);
  }
  EXPECT_GT(last, beam);
  Content content(pool);
  content.set(ids_from(0, pool.rows()), 0);
  EXPECT_GE(support::recall_of(index, content, problem.queries, 10, last), 0.93);
  // An index that is not calibrated keeps the beam that it was given.
  GraphIndex given = build_index(pool.slice(0, 500));
  given.set_beam(40);
  given.add(one_thread(), pool.slice(500, 300));
  EXPECT_FALSE(given.calibration());
  EXPECT_EQ(given.beam(), 40U);
}

// An index calibrated with far queries, which need a wide beam, grows by vectors of nearly equal codes.
TEST(GraphUpdateRecall, CodesThatBecomeTooCoarseAreNoticed) {
  constexpr std::size_t first = 1000;
  constexpr std::size_t dim = 64;
  support::Values values = support::generate(Kind::normal, 2600, dim, 37);
  for (std::size_t row = first; row < values.rows(); ++row)
    for (std::size_t i = 0; i < dim; ++i) values(row, i) *= i < 2 ? 0.12 : 0;
  const support::Rows rows(values, ElementType::f32);
  const RowsView pool = rows;
  support::Values far = support::generate(Kind::normal, 200, dim, 38);
  for (std::size_t row = 0; row < far.rows(); ++row)
    for (double& value : far.row(row)) value *= 4;
  GraphIndex index = GraphIndex::build(one_thread(), pool.slice(0, first), {.degree = 16});
  const GraphCalibration before =
      index.calibrate(one_thread(), {.queries = support::Rows(far, ElementType::f32)});
  ASSERT_FALSE(before.evaluates_beam);
  index.add(one_thread(), pool.slice(first, pool.rows() - first));
  const GraphCalibration after = *index.calibration();
  EXPECT_TRUE(after.evaluates_beam);
  EXPECT_EQ(after.beam, before.beam);
  EXPECT_EQ(after.beam_of_100, before.beam_of_100);
}

// Replacing vectors is no growth: a new graph would have no removed rows.
TEST(GraphUpdateRecall, UpdatesDoNotBuildTheGraphAnew) {
  const Problem problem =
      support::make_problem({.kind = Kind::normal, .rows = 1100, .queries = 1, .dim = 8, .seed = 36});
  const RowsView pool = problem.base;
  GraphIndex index = build_index(pool.slice(0, 1030));
  index.update(one_thread(), ids_from(0, 20), pool.slice(1030, 20));
  EXPECT_NE(support::bytes_of(index).find("removed"), std::string::npos);
}

TEST(GraphUpdateRecall, OfVectorsAddedOneByOneAndInBatches) {
  const Problem problem =
      support::make_problem({.kind = Kind::normal, .rows = 2000, .queries = 100, .dim = 12, .seed = 34});
  const RowsView pool = problem.base;
  Content content(pool);
  content.set(ids_from(0, 2000), 0);
  const GraphIndex fresh = build_index(pool);
  const double expected = support::recall_of(fresh, content, problem.queries, 10, 40);
  for (const std::size_t batch : {1UL, 37UL, 999UL}) {
    GraphIndex index = build_index(pool.slice(0, 1000));
    for (std::size_t first = 1000; first < 2000; first += batch)
      index.add(one_thread(), pool.slice(first, std::min(batch, 2000 - first)));
    EXPECT_GE(support::recall_of(index, content, problem.queries, 10, 40), expected - 0.01) << batch;
    expect_content(index, content, problem.queries);
    // Each is found by itself.
    const Neighbors found = index.search(one_thread(), pool, 1, {.beam = 64});
    std::size_t hits = 0;
    for (std::size_t row = 0; row < 2000; ++row) hits += found.ids(row, 0) == static_cast<Id>(row) ? 1 : 0;
    EXPECT_GE(hits, 1990U) << batch;
  }
}

// Would catch: codes of the first few vectors for the life of the index.
TEST(GraphUpdateRecall, OfAnIndexThatGrowsFromOneVector) {
  const Problem problem =
      support::make_problem({.kind = Kind::normal, .rows = 2000, .queries = 100, .dim = 12, .seed = 37});
  Matrix<float> small(2000, 12);
  for (std::size_t i = 0; i < 2000; ++i)
    for (std::size_t d = 0; d < 12; ++d) {
      float element = 0;
      std::memcpy(&element, problem.base.view().row(i) + d * sizeof(element), sizeof(element));
      small(i, d) = element / 100;
    }
  const RowsView pool = small;
  Content content(pool);
  content.set(ids_from(0, 2000), 0);
  GraphIndex index = build_index(pool.slice(0, 1));
  for (std::size_t row = 1; row < 2000; ++row) index.add(one_thread(), pool.slice(row, 1));
  const double expected = support::recall_of(build_index(pool), content, pool.slice(0, 100), 10, 40);
  EXPECT_GE(support::recall_of(index, content, pool.slice(0, 100), 10, 40), expected - 0.01);
}

}  // namespace
}  // namespace nearwise
