// Rotations against their definition in double precision, and principal axes of data whose axes are known.
//
// The suites named *Threads* are those that ThreadSanitizer runs.
#include "nearwise/quantize/rotation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "support/cancelling.h"
#include "support/memory_limits.h"
#include "support/quantizer_cases.h"

namespace nearwise {
namespace {

using support::Kind;
using support::Rows;
using support::same;

// matrix * (x - mean) by the definition: products in the order of the elements, the mean taken off along the
// axis.
std::vector<float> rotated_by_definition(const Rotation& rotation, RowsView rows) {
  const std::vector<double> values = oracle::to_doubles(rows);
  std::vector<float> result;
  for (std::size_t row = 0; row < rows.rows(); ++row)
    for (std::size_t axis = 0; axis < rotation.rotated_dim(); ++axis) {
      const auto element = [&](std::size_t i) {
        return static_cast<double>(rotation.matrix()[axis * rotation.dim() + i]);
      };
      double mean = 0;
      for (std::size_t i = 0; i < rotation.dim(); ++i)
        mean += element(i) * static_cast<double>(rotation.mean()[i]);
      double sum = -mean;
      for (std::size_t i = 0; i < rotation.dim(); ++i) sum += element(i) * values[row * rotation.dim() + i];
      result.push_back(static_cast<float>(sum));
    }
  return result;
}

// Largest deviation of the products of axes from those of orthonormal ones.
double deviation(const Rotation& rotation) {
  double most = 0;
  for (std::size_t i = 0; i < rotation.rotated_dim(); ++i)
    for (std::size_t j = 0; j < rotation.rotated_dim(); ++j) {
      double product = 0;
      for (std::size_t k = 0; k < rotation.dim(); ++k)
        product += static_cast<double>(rotation.matrix()[i * rotation.dim() + k]) *
                   static_cast<double>(rotation.matrix()[j * rotation.dim() + k]);
      most = std::max(most, std::abs(product - (i == j ? 1 : 0)));
    }
  return most;
}

double squared_distance(const Matrix<float>& rows, std::size_t left, std::size_t right) {
  double sum = 0;
  for (std::size_t i = 0; i < rows.cols(); ++i) {
    const double difference = static_cast<double>(rows(left, i)) - static_cast<double>(rows(right, i));
    sum += difference * difference;
  }
  return sum;
}

TEST(RotationApply, IsTheDefinitionToTheBit) {
  for (const std::size_t dim : {1UL, 3UL, 7UL, 17UL, 33UL, 100UL})
    for (const ElementType type : support::every_type) {
      const Rows training(support::generate(Kind::normal, 300, dim, 50), type);
      const Rotation rotation = Rotation::pca(Context::cpu(), training, dim - dim / 3);
      // 41 rows: tasks, groups of rows, and a rest.
      const Rows rows(support::generate(Kind::normal, 41, dim, 51), type, support::Layout::unaligned);
      const std::vector<float> expected = rotated_by_definition(rotation, rows);
      for (const Context& context : support::every_instruction_set())
        EXPECT_TRUE(same(expected, rotation.apply(context, rows)))
            << context.isa() << " dim " << dim << " " << name(type);
    }
}

TEST(RotationApply, IdentityChangesNothing) {
  for (const Kind kind : support::every_kind) {
    const Rows rows(support::generate(kind, 20, 19, 52), ElementType::f32);
    const std::vector<double> values = oracle::to_doubles(rows);
    std::vector<float> expected(values.begin(), values.end());
    for (float& element : expected) element += 0.0F;  // -0 + 0 is 0
    EXPECT_TRUE(same(expected, Rotation::identity(19).apply(Context::cpu(), rows))) << name(kind);
    EXPECT_TRUE(same(expected, Rotation::identity(19).reverse(Context::cpu(), rows))) << name(kind);
  }
}

TEST(RotationPca, AxesAreOrthonormalAndKeepDistances) {
  for (const Kind kind :
       {Kind::normal, Kind::near_duplicates, Kind::offset_1e4, Kind::constant_columns, Kind::identical})
    for (const std::size_t dim : {1UL, 3UL, 17UL, 100UL}) {
      SCOPED_TRACE(fmt::format("{} dim {}", name(kind), dim));
      const Rows rows(support::generate(kind, 250, dim, 53), ElementType::f32);
      const Rotation rotation = Rotation::pca(Context::cpu(), rows, dim);
      EXPECT_LT(deviation(rotation), 1e-5);
      const Matrix<float> rotated = rotation.apply(Context::cpu(), rows);
      const Matrix<float> back = rotation.reverse(Context::cpu(), rotated);
      const std::vector<double> values = oracle::to_doubles(rows);
      const double scale = kind == Kind::offset_1e4 ? 1e4 : 4;
      for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(back.data()[i], values[i], 1e-6 * scale);
      for (std::size_t row = 1; row < 250; row += 13) {
        double before = 0;
        for (std::size_t i = 0; i < dim; ++i) before += std::pow(values[i] - values[row * dim + i], 2);
        EXPECT_NEAR(squared_distance(rotated, 0, row), before, 1e-5 * before + 1e-9);
      }
    }
}

// Rows spread along known directions by 9, 3 and 1. Would catch: axes in another order, sign or side of the
// matrix.
TEST(RotationPca, FindsKnownAxes) {
  const std::vector<std::vector<double>> axes = {
      {0.6, 0.8, 0, 0}, {-0.8, 0.6, 0, 0}, {0, 0, 0, 1}, {0, 0, 1, 0}};
  const std::vector<double> spread = {9, 3, 1, 0.1};
  const Random random(54);
  support::Values values(20'000, 4);
  for (std::size_t row = 0; row < values.rows(); ++row)
    for (std::size_t axis = 0; axis < 4; ++axis) {
      const double along = spread[axis] * random.normal(row * 4 + axis);
      for (std::size_t i = 0; i < 4; ++i) values(row, i) += along * axes[axis][i] + (axis == 0 ? 100 : 0);
    }
  const Rows rows(values, ElementType::f32);
  const Rotation rotation = Rotation::pca(Context::cpu(), rows, 3);
  EXPECT_EQ(rotation.rotated_dim(), 3U);
  EXPECT_EQ(rotation.dim(), 4U);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const double sign = axis == 1 ? -1 : 1;  // the largest element is positive
    for (std::size_t i = 0; i < 4; ++i)
      EXPECT_NEAR(rotation.matrix()[axis * 4 + i], sign * axes[axis][i], 0.02) << "axis " << axis;
  }
  for (const float element : rotation.mean()) EXPECT_NEAR(element, 100, 0.3);
  // Variances along the axes fall as they should.
  const Matrix<float> rotated = rotation.apply(Context::cpu(), rows);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    double sum = 0;
    for (std::size_t row = 0; row < rotated.rows(); ++row)
      sum += std::pow(static_cast<double>(rotated(row, axis)), 2);
    EXPECT_NEAR(std::sqrt(sum / 20'000), spread[axis], 0.03 * spread[axis]);
  }
}

// A sample of the rows will do, and is drawn by the seed.
TEST(RotationPca, TrainsOnSomeRows) {
  const Rows rows(support::generate(Kind::normal, 5000, 6, 55), ElementType::f32);
  const auto matrix = [&](std::uint64_t seed, std::size_t training_rows) {
    const Rotation rotation =
        Rotation::pca(Context::cpu({.seed = seed}), rows, 6, {.training_rows = training_rows});
    return std::vector<float>(rotation.matrix().begin(), rotation.matrix().end());
  };
  EXPECT_EQ(matrix(1, 100), matrix(1, 100));
  EXPECT_NE(matrix(1, 100), matrix(2, 100));
  EXPECT_EQ(matrix(1, 5000), matrix(2, 5000));
  EXPECT_EQ(matrix(1, 5000), matrix(2, 9000));  // no more than there are
}

TEST(RotationThreads, AnyNumberOfThreadsAndInstructionSetGivesTheSameBytes) {
  const Rows rows(support::generate(Kind::offset_1e4, 9000, 37, 56), ElementType::f32);
  const Context one = Context::cpu({.threads = 1});
  const Rotation expected = Rotation::pca(one, rows, 20);
  const std::vector<float> rotated = support::to_vector(expected.apply(one, rows));
  std::vector<Context> contexts = support::every_instruction_set();
  contexts.push_back(Context::cpu({.threads = 2}));
  contexts.push_back(Context::cpu({.threads = 5}));
  for (const Context& context : contexts) {
    SCOPED_TRACE(fmt::format("{} threads {}", context.threads(), context.isa()));
    const Rotation rotation = Rotation::pca(context, rows, 20);
    EXPECT_TRUE(std::ranges::equal(rotation.matrix(), expected.matrix()));
    EXPECT_TRUE(std::ranges::equal(rotation.mean(), expected.mean()));
    EXPECT_TRUE(same(rotated, rotation.apply(context, rows)));
  }
}

TEST(RotationMemory, RunsWithinTheLimitItNames) {
  const Rows rows(support::generate(Kind::normal, 2000, 23, 57), ElementType::f32);
  const Rotation rotation = Rotation::pca(Context::cpu(), rows, 11);
  const Matrix<float> rotated = rotation.apply(Context::cpu(), rows);
  const std::vector<std::function<void(const Context&)>> calls = {
      [&](const Context& context) { Rotation::pca(context, rows, 11, {.training_rows = 700}); },
      [&](const Context& context) { rotation.apply(context, rows); },
      [&](const Context& context) { rotation.reverse(context, rotated); }};
  for (const auto& call : calls)
    for (const int threads : {1, 3}) {
      const auto refusal =
          support::error_from([&] { call(Context::cpu({.threads = threads, .memory_limit = 1})); });
      ASSERT_TRUE(refusal.has_value());
      EXPECT_EQ(refusal->code(), ErrorCode::out_of_memory) << refusal->what();
      const std::uint64_t least = std::ranges::max(support::sizes_in(refusal->what()));
      const Context context = Context::cpu({.threads = threads, .memory_limit = least});
      EXPECT_NO_THROW(call(context));
      EXPECT_LE(context.memory_peak(), least);
      EXPECT_EQ(context.memory_used(), 0U);
    }
}

TEST(RotationCancelThreads, StopsWhereverItIs) {
  const Rows rows(support::generate(Kind::normal, 3000, 16, 58), ElementType::f32);
  const Rotation rotation = Rotation::identity(16);
  for (const int threads : {1, 2})
    for (const int when : {0, 3}) {
      support::expect_cancelled_at_report(when, threads, "",
                                          [&](const Context& context) { rotation.apply(context, rows); });
      support::expect_cancelled_at_report(when, threads, "",
                                          [&](const Context& context) { rotation.reverse(context, rows); });
    }
  const Context cancelled = Context::cpu();
  cancelled.cancel();
  const auto error = support::error_from([&] { Rotation::pca(cancelled, rows, 3); });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), ErrorCode::cancelled);
}

void expect_refused(const std::function<void()>& call, const std::string& text) {
  const auto error = support::error_from(call);
  ASSERT_TRUE(error.has_value()) << text;
  EXPECT_EQ(error->code(), ErrorCode::invalid_argument) << error->what();
  EXPECT_NE(std::string(error->what()).find(text), std::string::npos) << error->what();
}

TEST(RotationErrors, ArgumentsThatMakeNoSense) {
  const Context context = Context::cpu();
  Rows rows(support::generate(Kind::normal, 50, 6, 59), ElementType::f32);
  const Rotation rotation = Rotation::pca(context, rows, 4);
  expect_refused([&] { Rotation::pca(context, rows, 0); }, "1 to 6, got 0");
  expect_refused([&] { Rotation::pca(context, rows, 7); }, "1 to 6, got 7");
  expect_refused([&] { Rotation::pca(context, rows.view().slice(0, 0), 2); }, "at least 1 row");
  expect_refused([&] { rotation.reverse(context, rows); }, "4 elements, got 6");
  expect_refused([&] { rotation.apply(context, Matrix<float>(1, 4)); }, "6 elements, got 4");
  expect_refused([&] { Rotation::identity(0); }, "at least 1");
  rows.put(33, 5, std::nanf(""));
  expect_refused([&] { Rotation::pca(context, rows, 2); }, "row 33");
  expect_refused([&] { rotation.apply(context, rows); }, "row 33");
}

TEST(RotationErrors, MatricesThatDoNotRotate) {
  const std::vector<float> matrix = {0.6F, 0.8F, 0, 0, 0, 1};
  const std::vector<float> mean = {1, 2, 3};
  const Rotation given = Rotation::from_matrix(3, 2, matrix, mean);
  EXPECT_TRUE(std::ranges::equal(given.matrix(), matrix));
  EXPECT_TRUE(std::ranges::equal(given.mean(), mean));
  EXPECT_TRUE(std::ranges::equal(Rotation::from_matrix(3, 2, matrix).mean(), std::vector<float>(3, 0.0F)));
  expect_refused([&] { Rotation::from_matrix(2, 3, matrix); }, "1 to 2 axes");
  expect_refused([&] { Rotation::from_matrix(3, 0, {}); }, "1 to 3 axes");
  expect_refused([&] { Rotation::from_matrix(3, 1, matrix); }, "3 numbers, got 6");
  expect_refused([&] { Rotation::from_matrix(3, 2, matrix, std::vector<float>(2)); }, "3 elements, got 2");
  for (const float wrong : {0.61F, std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> bad = matrix;
    bad[0] = wrong;
    expect_refused([&] { Rotation::from_matrix(3, 2, bad); }, "rows 0 and 0");
  }
  expect_refused(
      [&] {
        Rotation::from_matrix(3, 2, std::vector<float>{1, 0, 0, 0.6F, 0.8F, 0});
      },
      "rows 1 and 0");
  expect_refused(
      [&] {
        Rotation::from_matrix(3, 2, matrix, std::vector<float>{1, 2, std::nanf("")});
      },
      "finite");
}

}  // namespace
}  // namespace nearwise
