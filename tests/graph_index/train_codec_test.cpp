// Codes of graph indexes.
#include "graph_index/train_codec.h"

#include <gtest/gtest.h>

#include "core/math/random.h"
#include "support/knn_cases.h"

namespace nearwise::graph_index {
namespace {

Matrix<float> integers(std::size_t rows, std::size_t dim) {
  Matrix<float> made(rows, dim);
  const Random random(7);
  for (std::size_t i = 0; i < rows * dim; ++i) made.data()[i] = static_cast<float>(random.below(i, 256));
  return made;
}

// CPUs that scan floating-point vectors as integers and those that do not must agree.
TEST(TrainCodec, IntegersAreTheirOwnCodesOnEveryInstructionSet) {
  const Matrix<float> rows = integers(300, 7);
  for (const Context& context : support::every_instruction_set())
    for (const Metric metric : {Metric::sqeuclidean, Metric::euclidean})
      EXPECT_TRUE(train_codec(context, rows, metric).is_exact());
}

TEST(TrainCodec, OneOtherElementIsEnough) {
  for (const float other : {0.5F, -1.0F, 256.0F}) {
    Matrix<float> rows = integers(5000, 7);  // more than a task of the check
    rows(4999, 6) = other;
    const Context& first = support::every_instruction_set().front();
    const ScalarCodec expected = train_codec(first, rows, Metric::sqeuclidean);
    EXPECT_FALSE(expected.is_exact()) << other;
    for (const Context& context : support::every_instruction_set())
      EXPECT_EQ(train_codec(context, rows, Metric::sqeuclidean), expected) << other;
  }
}

}  // namespace
}  // namespace nearwise::graph_index
