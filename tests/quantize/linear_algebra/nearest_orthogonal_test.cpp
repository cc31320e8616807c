// Polar factors by what defines them: Q is orthogonal, Q' A is symmetric and positive semidefinite.
//
// The suites named *Threads* are those that ThreadSanitizer runs.
#include "quantize/linear_algebra/nearest_orthogonal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "backend/backend.h"
#include "oracle/decompositions.h"
#include "support/cancelling.h"
#include "support/matrix_cases.h"

namespace nearwise::quantize {
namespace {

std::vector<double> nearest(const Context& context, std::vector<double> matrix, std::size_t n) {
  EXPECT_TRUE(nearest_orthogonal(context, matrix, n));
  return matrix;
}

// left * diag(values) * right
std::vector<double> with_singular_values(const std::vector<double>& values, std::uint64_t seed) {
  const std::size_t n = values.size();
  return support::product(
      support::product(support::random_orthogonal(n, seed), support::diagonal_matrix(values), n),
      support::random_orthogonal(n, seed + 1), n);
}

double trace_of_product(const std::vector<double>& left, const std::vector<double>& right) {
  long double sum = 0;
  for (std::size_t i = 0; i < left.size(); ++i) sum += static_cast<long double>(left[i]) * right[i];
  return static_cast<double>(sum);
}

void expect_nearest(const std::vector<double>& matrix, std::size_t n, double sum_of_values) {
  const std::vector<double> q = nearest(Context::cpu(), matrix, n);
  EXPECT_LT(support::orthogonality_error(q, n), 1e-12);
  // The best sum of products is the sum of the singular values.
  EXPECT_NEAR(trace_of_product(q, matrix), sum_of_values, 1e-12 * sum_of_values);
  double size = 0;
  for (const double element : matrix) size = std::max(size, std::abs(element));
  const std::vector<double> polar = support::product(support::transposed(q, n), matrix, n);
  EXPECT_LT(support::largest_difference(polar, support::transposed(polar, n)),
            1e-9 * size * static_cast<double>(n));
}

TEST(NearestOrthogonal, ReachesTheSumOfSingularValues) {
  for (const std::size_t n : {1UL, 2UL, 3UL, 8UL, 31UL, 32UL, 33UL, 65UL, 130UL}) {
    SCOPED_TRACE(n);
    std::vector<double> values(n);
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += values[i] = 1 + 7 / static_cast<double>(i + 1);
    expect_nearest(with_singular_values(values, n), n, sum);
  }
}

// The singular values are square roots of the eigenvalues of A'A.
TEST(NearestOrthogonal, AgreesWithTheOracleOnRandomMatrices) {
  for (const std::size_t n : {2UL, 5UL, 20UL, 40UL}) {
    const std::vector<double> matrix = support::random_matrix(n, n, n);
    const std::vector<double> gram = support::product(support::transposed(matrix, n), matrix, n);
    long double sum = 0;
    for (const long double value : oracle::eigenvalues(gram, n)) sum += std::sqrt(std::max(0.0L, value));
    expect_nearest(matrix, n, static_cast<double>(sum));
  }
}

// Condition numbers up to infinity, and all sizes of elements.
TEST(NearestOrthogonal, OfMatricesThatAreHard) {
  const std::size_t n = 40;
  const std::vector<std::function<double(std::size_t)>> cases = {
      [](std::size_t) { return 1.0; },
      [](std::size_t i) { return i == 0 ? 1.0 : 0.0; },
      [](std::size_t i) { return i < 20 ? 1.0 : 0.0; },
      [](std::size_t i) { return i < 39 ? 1.0 : 1e-5; },
      [](std::size_t i) { return std::pow(10.0, -static_cast<double>(i) / 8); },
      [](std::size_t i) { return std::pow(10.0, -static_cast<double>(i)); }};
  for (std::size_t number = 0; number < cases.size(); ++number)
    for (const double scale : {1.0, 1e-150, 1e150}) {
      SCOPED_TRACE(fmt::format("matrix {} times {}", number, scale));
      std::vector<double> values(n);
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) sum += values[i] = scale * cases[number](i);
      expect_nearest(with_singular_values(values, 12), n, sum);
    }
}

// U S V' becomes U V': a rotation scaled along its axes is found again, also where one scale is 0.
TEST(NearestOrthogonal, UndoesScaling) {
  const std::vector<double> rotation = {0.6, -0.8, 0, 0.8, 0.6, 0, 0, 0, 1};
  for (const double last : {2.0, 0.0}) {
    const std::vector<double> q =
        nearest(Context::cpu(), support::product(rotation, support::diagonal_matrix({5, 3, last}), 3), 3);
    for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(q[i], rotation[i], 1e-12) << i;
    EXPECT_NEAR(std::abs(q[8]), 1, 1e-12);
  }
}

// Exact zeros, which no rounding error disturbs: rows and columns without elements, also those of other
// numbers.
TEST(NearestOrthogonal, OfMatricesWithZeroRowsAndColumns) {
  EXPECT_EQ(nearest(Context::cpu(), std::vector<double>(9, 0.0), 3), support::diagonal_matrix({1, 1, 1}));
  const std::size_t n = 35;
  std::vector<double> matrix = support::random_matrix(n, n, 13);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t zero = 0; zero < 9; ++zero) {
      matrix[(zero * 3 + 1) * n + i] = 0;
      matrix[i * n + zero * 2] = 0;
    }
  EXPECT_LT(support::orthogonality_error(nearest(Context::cpu(), matrix, n), n), 1e-12);
  std::vector<double> shift(n * n, 0.0);
  for (std::size_t i = 0; i + 1 < n; ++i) shift[i * n + i + 1] = 1;
  const std::vector<double> q = nearest(Context::cpu(), shift, n);
  EXPECT_LT(support::orthogonality_error(q, n), 1e-12);
  for (std::size_t i = 0; i + 1 < n; ++i) EXPECT_NEAR(q[i * n + i + 1], 1, 1e-12);
}

TEST(NearestOrthogonalThreads, AnyNumberOfThreadsAndInstructionSetGivesTheSameBytes) {
  const std::size_t n = 100;
  const std::vector<double> matrix = support::random_matrix(n, n, 14);
  const std::vector<double> expected = nearest(Context::cpu({.threads = 1}), matrix, n);
  for (const Context& context : support::every_way_to_compute())
    EXPECT_EQ(nearest(context, matrix, n), expected) << context.isa() << " " << context.threads();
}

TEST(NearestOrthogonal, TakesTheMemoryItNames) {
  for (const std::size_t n : {1UL, 32UL, 70UL}) {
    const Context context = Context::cpu();
    nearest(context, support::random_matrix(n, n, 16), n);
    EXPECT_EQ(context.memory_peak(), nearest_orthogonal_bytes(n));
    EXPECT_EQ(context.memory_used(), 0U);
  }
}

TEST(NearestOrthogonal, IsCancelled) {
  const Context context = Context::cpu();
  context.cancel();
  const auto error = support::error_from([&] { nearest(context, support::random_matrix(40, 40, 15), 40); });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), ErrorCode::cancelled);
  EXPECT_EQ(context.memory_used(), 0U);
}

}  // namespace
}  // namespace nearwise::quantize
