// Eigenvectors by what defines them, eigenvalues against Jacobi rotations in long double.
//
// The suites named *Threads* are those that ThreadSanitizer runs.
#include "quantize/linear_algebra/eigenvectors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "backend/backend.h"
#include "oracle/decompositions.h"
#include "support/cancelling.h"
#include "support/matrix_cases.h"

namespace nearwise::quantize {
namespace {

struct Decomposition {
  std::vector<double> vectors;
  std::vector<double> values;

  bool operator==(const Decomposition&) const = default;
};

Decomposition decompose(const Context& context, const std::vector<double>& matrix, std::size_t n) {
  Decomposition found{matrix, std::vector<double>(n)};
  eigenvectors(context, found.vectors, found.values);
  return found;
}

// rotation * diag(values) * rotation', made exactly symmetric.
std::vector<double> with_eigenvalues(const std::vector<double>& values, std::uint64_t seed) {
  const std::size_t n = values.size();
  const std::vector<double> axes = support::random_orthogonal(n, seed);
  std::vector<double> matrix = support::product(support::product(axes, support::diagonal_matrix(values), n),
                                                support::transposed(axes, n), n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < i; ++j) matrix[i * n + j] = matrix[j * n + i];
  return matrix;
}

std::vector<double> symmetric_matrix(std::size_t n, std::uint64_t seed) {
  std::vector<double> matrix = support::random_matrix(n, n, seed);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < i; ++j) matrix[i * n + j] = matrix[j * n + i];
  return matrix;
}

// Orthonormal, matrix * v = value * v, descending, signs as promised. Errors relative to the largest
// eigenvalue.
void expect_decomposition(const std::vector<double>& matrix, std::size_t n) {
  const Decomposition found = decompose(Context::cpu(), matrix, n);
  EXPECT_LT(support::orthogonality_error(found.vectors, n), 1e-13);
  EXPECT_TRUE(std::ranges::is_sorted(found.values, std::greater()));
  double scale = 0;
  for (const double value : found.values) scale = std::max(scale, std::abs(value));
  const std::vector<double> products = support::product(found.vectors, matrix, n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto axis = found.vectors.begin() + static_cast<std::ptrdiff_t>(i * n);
    for (std::size_t j = 0; j < n; ++j)
      ASSERT_NEAR(products[i * n + j], found.values[i] * axis[static_cast<std::ptrdiff_t>(j)], 1e-13 * scale)
          << i << " " << j;
    EXPECT_GT(*std::max_element(axis, axis + static_cast<std::ptrdiff_t>(n),
                                [](double a, double b) { return std::abs(a) < std::abs(b); }),
              0);
  }
}

TEST(Eigenvectors, SatisfyTheirDefinition) {
  for (const std::size_t n : {1UL, 2UL, 3UL, 7UL, 31UL, 32UL, 33UL, 64UL, 100UL, 257UL}) {
    SCOPED_TRACE(n);
    expect_decomposition(symmetric_matrix(n, n), n);
  }
}

TEST(Eigenvectors, ValuesAreThoseOfJacobiRotations) {
  for (const std::size_t n : {1UL, 2UL, 3UL, 10UL, 33UL, 60UL}) {
    const std::vector<double> matrix = symmetric_matrix(n, n + 100);
    const std::vector<double> values = decompose(Context::cpu(), matrix, n).values;
    const std::vector<long double> expected = oracle::eigenvalues(matrix, n);
    for (std::size_t i = 0; i < n; ++i)
      EXPECT_NEAR(values[i], static_cast<double>(expected[i]), 1e-13 * static_cast<double>(n))
          << n << " " << i;
  }
}

// Zero, rank one, repeated, clustered and graded eigenvalues, of small and of huge matrices.
TEST(Eigenvectors, OfMatricesThatAreHard) {
  const std::size_t n = 50;
  const auto made_of = [&](const std::function<double(std::size_t)>& value) {
    std::vector<double> values(n);
    for (std::size_t i = 0; i < n; ++i) values[i] = value(i);
    return with_eigenvalues(values, 9);
  };
  const std::vector<std::vector<double>> cases = {
      std::vector<double>(n * n, 0.0),
      std::vector<double>(n * n, 1.0),
      support::diagonal_matrix(std::vector<double>(n, -3.0)),
      made_of([](std::size_t i) { return i == 0 ? 5.0 : 0.0; }),
      made_of([](std::size_t i) { return i % 3 == 0 ? 2.0 : -1.0; }),
      made_of([](std::size_t i) { return 1 + 1e-14 * static_cast<double>(i); }),
      made_of([](std::size_t i) { return std::pow(10.0, -static_cast<double>(i)); }),
      made_of([](std::size_t i) { return std::pow(10.0, static_cast<double>(i % 30) - 15); })};
  for (std::size_t number = 0; number < cases.size(); ++number)
    for (const double scale : {1.0, 1e-200, 1e200, 0x1p-1060}) {
      SCOPED_TRACE(fmt::format("matrix {} times {}", number, scale));
      std::vector<double> matrix = cases[number];
      for (double& element : matrix) element *= scale;
      if (scale > 0x1p-1000) {
        expect_decomposition(matrix, n);
      } else {
        // Eigenvalues are denormal: what remains to be asked for is orthogonality.
        EXPECT_LT(support::orthogonality_error(decompose(Context::cpu(), matrix, n).vectors, n), 1e-13);
      }
    }
}

// Repeated eigenvalues of a diagonal matrix leave the axes as they are, in order.
TEST(Eigenvectors, OfDiagonalMatricesAreUnitVectors) {
  const Decomposition found = decompose(Context::cpu(), support::diagonal_matrix({1, 7, 1, -2}), 4);
  EXPECT_EQ(found.values, (std::vector<double>{7, 1, 1, -2}));
  EXPECT_EQ(found.vectors, (std::vector<double>{0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}));
}

TEST(EigenvectorsThreads, AnyNumberOfThreadsAndInstructionSetGivesTheSameBytes) {
  const std::size_t n = 150;
  const std::vector<double> matrix = symmetric_matrix(n, 10);
  const Decomposition expected = decompose(Context::cpu({.threads = 1}), matrix, n);
  for (const Context& context : support::every_way_to_compute())
    EXPECT_EQ(decompose(context, matrix, n), expected) << context.isa() << " " << context.threads();
}

TEST(Eigenvectors, TakeTheMemoryTheyName) {
  for (const std::size_t n : {1UL, 32UL, 70UL}) {
    const Context context = Context::cpu();
    decompose(context, symmetric_matrix(n, 12), n);
    EXPECT_EQ(context.memory_peak(), eigenvectors_bytes(n));
    EXPECT_EQ(context.memory_used(), 0U);
  }
}

TEST(Eigenvectors, AreCancelled) {
  const Context context = Context::cpu();
  context.cancel();
  const auto error = support::error_from([&] { decompose(context, symmetric_matrix(40, 11), 40); });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), ErrorCode::cancelled);
  EXPECT_EQ(context.memory_used(), 0U);
}

}  // namespace
}  // namespace nearwise::quantize
