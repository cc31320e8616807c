// How many pairs a plan expects, whatever the order of the vectors in the file.
#include "plan/join/join_costs.h"

#include <gtest/gtest.h>

#include "plan/join/join_plan_fixture.h"

namespace nearwise::plan {
namespace {

class JoinCostsOfPairs : public JoinPlanTest {
 protected:
  double predicted(const RowsView& rows) {
    write_file(rows);
    const JoinWork work = join_work(context(), files("work"), 0, {.method = JoinMethod::pairs});
    return measure_join(context(), work, VectorFile::open(vectors).rows()).found;
  }
  // `apart` different vectors, then equal ones.
  static Matrix<float> vectors_of(std::size_t count, std::size_t apart) {
    Matrix<float> rows(count, 2);
    for (std::size_t row = 0; row < count; ++row) {
      rows(row, 0) = row < apart ? static_cast<float>(10 * row + 10) : 0.0F;
      rows(row, 1) = 1;
    }
    return rows;
  }
};

// As many as the sample has, so that all of them are in it.
TEST_F(JoinCostsOfPairs, EqualVectorsBehindOthers) {
  constexpr double equal = 8192 - 2048;
  constexpr double expected = equal * (equal - 1) / 2;
  EXPECT_NEAR(predicted(vectors_of(8192, 2048)), expected, 0.2 * expected);
}

// Of more vectors than the sample has, in which each meets three of its seven equals.
TEST_F(JoinCostsOfPairs, VectorsThatRepeat) {
  Matrix<float> rows(20'000, 2);
  for (std::size_t row = 0; row < 20'000; ++row) rows(row, 0) = rows(row, 1) = static_cast<float>(row % 2500);
  constexpr double expected = 2500.0 * 8 * 7 / 2;
  EXPECT_NEAR(predicted(rows), expected, 0.2 * expected);
}

TEST_F(JoinCostsOfPairs, AtLeastOneForEachVector) {
  EXPECT_EQ(predicted(vectors_of(300, 300)), 300);
  EXPECT_EQ(predicted(vectors_of(1, 0)), 1);
}

}  // namespace
}  // namespace nearwise::plan
