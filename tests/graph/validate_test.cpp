// validate() finds every way to break the contract; measure_recall counts true neighbours and nothing else.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "nearwise/exact.h"
#include "support/error_of.h"
#include "support/graph_cases.h"

namespace nearwise {
namespace {

using support::error_of;
using support::Kind;
using support::Rows;

const Context& context() {
  static const Context one_thread = Context::cpu({.threads = 1});
  return one_thread;
}

TEST(ValidateGraph, NamesTheRowAndWhatIsWrong) {
  const Rows rows(support::generate(Kind::normal, 30, 4, 1), ElementType::f32);
  const std::pair<std::function<void(Neighbors&)>, std::string> damages[] = {
      {[](Neighbors& n) { n.ids(7, 2) = 7; }, "row 7 must not be its own neighbour"},
      {[](Neighbors& n) { n.ids(8, 1) = 30; }, "row 8 must have 5 neighbours from 0 to 29, got 30"},
      {[](Neighbors& n) { n.ids(9, 4) = no_id; }, "row 9 must have 5 neighbours from 0 to 29, got -1"},
      {[](Neighbors& n) { n.ids(3, 4) = n.ids(3, 0); }, "row 3 must have different neighbours"},
      {[](Neighbors& n) { std::swap(n.distances(4, 0), n.distances(4, 1)); },
       "row 4 must be ordered by distance"},
      {[](Neighbors& n) { n.distances(5, 3) = std::nanf(""); }, "row 5 must have distances that are numbers"},
      {[](Neighbors& n) { n.distances = Matrix<float>(30, 4); }, "ids and distances must have one shape"},
  };
  for (const auto& [damage, words] : damages) {
    KnnGraph graph = build_knn_graph(context(), rows, {.degree = 5});
    EXPECT_NO_THROW(graph.validate());
    damage(graph.neighbors);
    const Error error = error_of([&] { graph.validate(); });
    EXPECT_EQ(error.code(), ErrorCode::corrupt) << words;
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST(ValidateGraph, RefusesAHoleWhereRowsAreShort) {
  const Rows rows(support::generate(Kind::normal, 4, 4, 2), ElementType::f32);
  KnnGraph graph = build_knn_graph(context(), rows, {.degree = 6});
  EXPECT_NO_THROW(graph.validate());
  graph.neighbors.ids(2, 5) = 1;
  EXPECT_EQ(error_of([&] { graph.validate(); }).code(), ErrorCode::corrupt);
}

TEST(MeasureRecall, CountsTrueNeighboursOnce) {
  const Rows rows(support::generate(Kind::exact_duplicates, 200, 4, 3), ElementType::f32);
  for (const Metric metric : support::every_metric) {
    Neighbors neighbors = exact_knn_graph(context(), rows, 8, {.metric = metric});
    EXPECT_EQ(measure_recall(context(), rows, neighbors, metric).value, 1);
    EXPECT_EQ(measure_recall(context(), rows, neighbors, metric, 20).rows, 20U);
    for (std::size_t row = 0; row < 200; ++row) {
      neighbors.ids(row, 0) = neighbors.ids(row, 1);  // twice
      neighbors.ids(row, 2) = static_cast<Id>(row);   // itself
      neighbors.ids(row, 3) = no_id;                  // nobody
      neighbors.distances(row, 4) = -1e30F;           // a lie, which is not believed
    }
    EXPECT_DOUBLE_EQ(measure_recall(context(), rows, neighbors, metric, std::nullopt).value, 5.0 / 8)
        << name(metric);
  }
}

TEST(MeasureRecall, RefusesWhatIsNoGraphOfTheRows) {
  const Rows rows(support::generate(Kind::normal, 30, 4, 4), ElementType::f32);
  Neighbors neighbors = exact_knn_graph(context(), rows, 3);
  neighbors.ids(11, 1) = 30;
  EXPECT_NE(
      std::string(error_of([&] { measure_recall(context(), rows, neighbors, Metric::sqeuclidean); }).what())
          .find("got 30 in row 11"),
      std::string::npos);
  const Neighbors fewer = exact_knn_graph(context(), rows.view().slice(0, 20), 3);
  EXPECT_EQ(error_of([&] { measure_recall(context(), rows, fewer, Metric::sqeuclidean); }).code(),
            ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace nearwise
