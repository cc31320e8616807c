// Which searches are worth screening by 8-bit integers: judged by a sample of their products.
#include <gtest/gtest.h>

#include "ops/exact_search.h"
#include "support/knn_cases.h"
#include "support/problems.h"
#include "support/rows.h"

namespace nearwise {
namespace {

using support::Kind;
using support::Rows;

bool suits(Kind kind, Metric metric) {
  const Rows rows(support::generate(kind, 300, 128, 1), ElementType::f32);
  return suits_coarse_scores(rows.view().slice(0, 20), rows, metric);
}

TEST(CoarseScores, SuitProductsThatDiffer) {
  for (const Metric metric : {Metric::inner_product, Metric::cosine}) {
    EXPECT_TRUE(suits(Kind::normal, metric));
    EXPECT_TRUE(suits(Kind::sparse, metric));
  }
}

TEST(CoarseScores, DoNotSuitALargeOffset) {
  for (const Metric metric : {Metric::inner_product, Metric::cosine}) {
    EXPECT_FALSE(suits(Kind::offset_1e4, metric));
    EXPECT_FALSE(suits(Kind::offset_1e6, metric));
  }
  // The centre takes it away.
  EXPECT_TRUE(suits(Kind::offset_1e4, Metric::sqeuclidean));
}

TEST(CoarseScores, AreJudgedOnFewOrOddRows) {
  const Rows rows(support::generate(Kind::normal, 3, 7, 1), ElementType::f32);
  EXPECT_TRUE(suits_coarse_scores(rows.view().slice(0, 0), rows, Metric::inner_product));
  EXPECT_TRUE(suits_coarse_scores(rows, rows.view().slice(0, 1), Metric::inner_product));
  for (const Kind kind : {Kind::identical, Kind::zero_rows, Kind::largest, Kind::denormal})
    for (const Metric metric : support::every_metric) suits(kind, metric);  // no trap, no error
}

}  // namespace
}  // namespace nearwise
