// Cholesky solutions against Gaussian elimination in long double.
//
// The suites named *Threads* are those that ThreadSanitizer runs.
#include "quantize/linear_algebra/solve_positive.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "oracle/decompositions.h"
#include "support/cancelling.h"
#include "support/matrix_cases.h"

namespace nearwise::quantize {
namespace {

// B B' plus `added` on the diagonal.
std::vector<double> positive_matrix(std::size_t n, std::size_t rank, double added, std::uint64_t seed) {
  const std::vector<double> factor = support::random_matrix(n, rank, seed);
  std::vector<double> matrix(n * n, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t k = 0; k < rank; ++k) matrix[i * n + j] += factor[i * rank + k] * factor[j * rank + k];
    matrix[i * n + i] += added;
  }
  return matrix;
}

// Solves for the columns of `right` [n, columns]. What is below the diagonal is not to be read: NaN.
std::vector<double> solved(const Context& context, const std::vector<double>& matrix,
                           const std::vector<double>& right, std::size_t n) {
  const std::size_t columns = right.size() / n;
  MemoryBudget budget;
  StripMatrix left(budget, n, n);
  StripMatrix sides(budget, n, columns);
  for (std::size_t strip = 0; strip < left.strips(); ++strip) left.clear(strip);
  for (std::size_t strip = 0; strip < sides.strips(); ++strip) sides.clear(strip);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j)
      left(i, j) = j < i ? std::numeric_limits<double>::quiet_NaN() : matrix[i * n + j];
    for (std::size_t j = 0; j < columns; ++j) sides(i, j) = right[i * columns + j];
  }
  for (std::size_t i = n; i < left.row_blocks() * StripMatrix::width; ++i) left(i, i) = 1;
  solve_positive(context, left, sides);
  std::vector<double> x(right.size());
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < columns; ++j) x[i * columns + j] = sides(i, j);
  return x;
}

// Orders below, at and above blocks of 32 and panels of 256.
TEST(SolvePositive, IsTheSolutionByElimination) {
  for (const std::size_t n :
       {1UL, 2UL, 5UL, 31UL, 32UL, 33UL, 64UL, 100UL, 255UL, 256UL, 257UL, 420UL, 700UL}) {
    const std::vector<double> matrix = positive_matrix(n, 8, 3.0, n);
    const std::vector<double> right = support::random_matrix(n, 1, n + 1);
    const std::vector<double> x = solved(Context::cpu(), matrix, right, n);
    const std::vector<long double> expected = oracle::solve(matrix, right);
    for (std::size_t i = 0; i < n; ++i)
      ASSERT_NEAR(x[i], static_cast<double>(expected[i]), 1e-12) << "order " << n << " element " << i;
  }
}

TEST(SolvePositive, EveryColumnIsSolvedOnItsOwn) {
  const std::size_t n = 70;
  const std::vector<double> matrix = positive_matrix(n, 20, 1.0, 1);
  for (const std::size_t columns : {2UL, 31UL, 32UL, 33UL, 129UL}) {
    const std::vector<double> right = support::random_matrix(n, columns, 2);
    const std::vector<double> x = solved(Context::cpu(), matrix, right, n);
    for (std::size_t j = 0; j < columns; ++j) {
      std::vector<double> side(n);
      for (std::size_t i = 0; i < n; ++i) side[i] = right[i * columns + j];
      const std::vector<double> alone = solved(Context::cpu(), matrix, side, n);
      for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(x[i * columns + j], alone[i]) << columns << " " << j;
    }
  }
}

// Ill-conditioned by 1e10: x is inexact, but the equations hold to rounding, and a backward stable method
// says so.
TEST(SolvePositive, EquationsHoldNearSingularMatrices) {
  for (const std::size_t n : {40UL, 300UL}) {
    const std::vector<double> matrix = positive_matrix(n, n / 2, 1e-8, n);
    const std::vector<double> right = support::random_matrix(n, 1, n + 1);
    const std::vector<double> x = solved(Context::cpu(), matrix, right, n);
    double size = 0;
    for (const double element : x) size = std::max(size, std::abs(element));
    for (std::size_t i = 0; i < n; ++i) {
      long double sum = 0;
      for (std::size_t j = 0; j < n; ++j) sum += static_cast<long double>(matrix[i * n + j]) * x[j];
      EXPECT_NEAR(static_cast<double>(sum), right[i], 1e-14 * static_cast<double>(n * n) * size) << i;
    }
  }
}

TEST(SolvePositive, BadlyScaledMatrices) {
  const std::size_t n = 90;
  const std::vector<double> base = positive_matrix(n, 10, 2.0, 3);
  const std::vector<double> right = support::random_matrix(n, 1, 4);
  // D A D x = D b has the solution inverse(D) inverse(A) b. Powers of four have exact square roots: the same
  // bits.
  std::vector<double> matrix = base;
  std::vector<double> scaled = right;
  const auto scale = [](std::size_t i) { return std::ldexp(1.0, 4 * (static_cast<int>(i) % 50) - 100); };
  for (std::size_t i = 0; i < n; ++i) {
    scaled[i] *= scale(i);
    for (std::size_t j = 0; j < n; ++j) matrix[i * n + j] *= scale(i) * scale(j);
  }
  const std::vector<double> expected = solved(Context::cpu(), base, right, n);
  const std::vector<double> x = solved(Context::cpu(), matrix, scaled, n);
  for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(x[i] * scale(i), expected[i]) << i;
}

TEST(SolvePositive, RefusesMatricesThatAreNotPositiveDefinite) {
  for (const std::size_t wrong : {0UL, 31UL, 32UL, 69UL})
    for (const double pivot : {-1.0, 0.0, std::numeric_limits<double>::infinity()}) {
      std::vector<double> matrix = support::diagonal_matrix(std::vector<double>(70, 2.0));
      matrix[wrong * 70 + wrong] = pivot;
      const auto error =
          support::error_from([&] { solved(Context::cpu(), matrix, std::vector<double>(70, 1.0), 70); });
      ASSERT_TRUE(error.has_value()) << wrong << " " << pivot;
      EXPECT_EQ(error->code(), ErrorCode::internal);
    }
}

TEST(SolvePositiveThreads, AnyNumberOfThreadsAndInstructionSetGivesTheSameBytes) {
  const std::size_t n = 330;
  const std::vector<double> matrix = positive_matrix(n, 15, 1.0, 5);
  const std::vector<double> right = support::random_matrix(n, 70, 6);
  const std::vector<double> expected = solved(Context::cpu({.threads = 1}), matrix, right, n);
  for (const Context& context : support::every_way_to_compute())
    EXPECT_EQ(solved(context, matrix, right, n), expected) << context.isa() << " " << context.threads();
}

TEST(SolvePositive, IsCancelled) {
  const Context context = Context::cpu();
  context.cancel();
  const auto error = support::error_from(
      [&] { solved(context, positive_matrix(40, 4, 1.0, 7), std::vector<double>(40, 1.0), 40); });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), ErrorCode::cancelled);
}

}  // namespace
}  // namespace nearwise::quantize
