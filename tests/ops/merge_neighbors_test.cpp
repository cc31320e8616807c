// Answers of parts, joined: against all entries sorted.
#include "nearwise/merge_neighbors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "support/error_of.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::error_of;

struct Entry {
  double distance = 0;
  Id id = no_id;
};

// One row of every part, and what all of them together must be.
using Row = std::vector<Entry>;

Row best_of(const std::vector<Row>& rows, std::size_t k, Metric metric) {
  const double worst = std::numeric_limits<double>::infinity();
  Row all;
  for (const Row& row : rows) all.insert(all.end(), row.begin(), row.end());
  const bool largest_first = metric == Metric::inner_product;
  std::sort(all.begin(), all.end(), [&](const Entry& left, const Entry& right) {
    if (left.distance != right.distance)
      return largest_first ? left.distance > right.distance : left.distance < right.distance;
    return left.id < right.id;
  });
  all.resize(k, {largest_first ? -worst : worst, no_id});
  return all;
}

Neighbors as_part(const std::vector<Row>& rows, std::size_t cols, Metric metric) {
  Neighbors part{Matrix<Id>(rows.size(), cols), Matrix<float>(rows.size(), cols)};
  for (std::size_t query = 0; query < rows.size(); ++query) {
    const Row row = best_of({rows[query]}, cols, metric);
    for (std::size_t i = 0; i < cols; ++i) {
      part.ids.view()(query, i) = row[i].id;
      part.distances.view()(query, i) = static_cast<float>(row[i].distance);
    }
  }
  return part;
}

class MergeNeighbors : public testing::TestWithParam<Metric> {};

TEST_P(MergeNeighbors, AreTheBestOfAllParts) {
  std::mt19937 random(7);
  const Context context = Context::cpu({.threads = 2});
  for (const std::size_t parts : {1, 2, 3, 9})
    for (const std::size_t k : {1, 4, 40}) {
      SCOPED_TRACE(testing::Message() << parts << " parts, k " << k);
      constexpr std::size_t queries = 13;
      std::vector<std::vector<Row>> given(queries, std::vector<Row>(parts));
      std::vector<Neighbors> answers;
      std::vector<NeighborsView> views;
      for (std::size_t part = 0; part < parts; ++part) {
        std::vector<Row> rows(queries);
        const std::size_t cols = 1 + random() % 8;
        for (std::size_t query = 0; query < queries; ++query) {
          // Few different distances, so that ties are frequent, and often fewer entries than columns.
          const std::size_t entries = random() % (cols + 1);
          for (std::size_t i = 0; i < entries; ++i)
            rows[query].push_back(
                {static_cast<double>(random() % 3), static_cast<Id>(random() % 1000 * parts + part)});
          given[query][part] = rows[query];
        }
        answers.push_back(as_part(rows, cols, GetParam()));
      }
      for (const Neighbors& answer : answers) views.push_back({answer.ids.view(), answer.distances.view()});
      const Neighbors joined = merge_neighbors(context, GetParam(), views, k);
      for (std::size_t query = 0; query < queries; ++query) {
        const Row expected = best_of(given[query], k, GetParam());
        for (std::size_t i = 0; i < k; ++i) {
          EXPECT_EQ(joined.ids.view()(query, i), expected[i].id) << query << ", " << i;
          EXPECT_EQ(joined.distances.view()(query, i), expected[i].distance) << query << ", " << i;
        }
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Metrics, MergeNeighbors, testing::ValuesIn(support::every_metric),
                         support::metric_name);

TEST(MergeNeighborsErrors, RefuseWhatDoesNotFitTogether) {
  const Context context = Context::cpu({.threads = 1, .memory_limit = 1000});
  const Neighbors three{Matrix<Id>(3, 2), Matrix<float>(3, 2)};
  const Neighbors four{Matrix<Id>(4, 2), Matrix<float>(4, 2)};
  const auto merged = [&](const std::vector<NeighborsView>& parts, std::size_t k) {
    return error_of([&] { merge_neighbors(context, Metric::sqeuclidean, parts, k); });
  };
  EXPECT_STREQ(merged({}, 1).what(), "merge_neighbors: at least one part is needed, got none");
  EXPECT_STREQ(merged({{three.ids.view(), three.distances.view()}}, 0).what(),
               "merge_neighbors: k must be at least 1, got 0");
  EXPECT_STREQ(merged({{three.ids.view(), four.distances.view()}}, 1).what(),
               "merge_neighbors: ids and distances must have one shape, got [3, 2] and [4, 2]");
  EXPECT_STREQ(
      merged({{three.ids.view(), three.distances.view()}, {four.ids.view(), four.distances.view()}}, 1)
          .what(),
      "merge_neighbors: all parts must have the same queries, got 3 and 4");
  EXPECT_EQ(merged({{three.ids.view(), three.distances.view()}}, 100).code(), ErrorCode::out_of_memory);
}

}  // namespace
}  // namespace nearwise
