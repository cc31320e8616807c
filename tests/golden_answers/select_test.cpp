// Selection of the best values of rows, and answers of parts that are merged.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "golden_answers/data.h"
#include "golden_answers/golden.h"
#include "nearwise/exact.h"
#include "nearwise/merge_neighbors.h"
#include "nearwise/select_k.h"

namespace nearwise::golden {
namespace {

void expect_selection(const std::string& name, const Selection& selection) {
  expect(name, [&](Digest& digest) {
    digest.add(selection.ids);
    digest.add(selection.values);
  });
}

// Few different values, both zeros, infinities and NaN among them.
Matrix<float> values_to_select(std::size_t rows, std::size_t columns) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const Random random(11);
  Matrix<float> values(rows, columns);
  for (std::size_t i = 0; i < rows * columns; ++i) {
    const auto number = static_cast<float>(random.below(2 * i, 3000)) / 8 - 100;
    const std::uint64_t kind = random.below(2 * i + 1, 200);
    values.data()[i] = kind == 0   ? infinity
                       : kind == 1 ? -infinity
                       : kind == 2 ? std::numeric_limits<float>::quiet_NaN()
                       : kind == 3 ? -0.0F
                       : kind == 4 ? 0.0F
                                   : number;
  }
  return values;
}

TEST(GoldenSelect, SelectK) {
  const Matrix<float> values = values_to_select(30, 1200);
  Matrix<Id> ids(30, 1200);
  Matrix<std::uint32_t> short_ids(1, 1200);
  const Random random(12);
  for (std::size_t i = 0; i < 30 * 1200; ++i) ids.data()[i] = static_cast<Id>(random.below(i, 5000)) - 100;
  for (std::size_t i = 0; i < 1200; ++i)
    short_ids.data()[i] = static_cast<std::uint32_t>(random.below(i, 900));
  for (const Context& context : every_context())
    for (const Order order : {Order::smallest, Order::largest}) {
      const std::string beginning = order == Order::smallest ? "select_k.smallest" : "select_k.largest";
      for (const std::size_t k : {1, 10, 100, 700}) {
        expect_selection(fmt::format("{}.{}", beginning, k), select_k(context, values, k, {.order = order}));
        expect_selection(fmt::format("{}.ids.{}", beginning, k),
                         select_k(context, values, ids.view(), k, {.order = order}));
        expect_selection(fmt::format("{}.short_ids.{}", beginning, k),
                         select_k(context, values, short_ids.view(), k, {.order = order}));
      }
      expect_selection(beginning + ".pad", select_k(context, values.view().slice(0, 3), 1300,
                                                    {.order = order, .short_rows = ShortRows::pad}));
    }
}

TEST(GoldenSelect, MergeNeighbors) {
  const support::Rows base = make_rows(500, 19, 1);
  const support::Rows queries = make_rows(33, 19, 2);
  for (const Metric metric : every_metric) {
    const Neighbors first = knn(context(), queries, base.view().slice(0, 200), 10, {.metric = metric});
    Neighbors second = knn(context(), queries, base.view().slice(200, 300), 15, {.metric = metric});
    for (std::size_t i = 0; i < second.ids.rows() * second.ids.cols(); ++i) second.ids.data()[i] += 200;
    const std::vector<NeighborsView> parts = {{first.ids, first.distances}, {second.ids, second.distances}};
    for (const std::size_t k : {5, 10, 30})
      expect_answer(fmt::format("merge_neighbors.{}.{}", name(metric), k),
                    merge_neighbors(context(), metric, parts, k));
  }
}

}  // namespace
}  // namespace nearwise::golden
