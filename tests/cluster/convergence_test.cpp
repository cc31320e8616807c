#include "cluster/convergence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <vector>

namespace nearwise::cluster {
namespace {

// Errors whose k-th fall is c * k^-power.
std::vector<double> falling(std::size_t count, double power) {
  std::vector<double> errors = {1000};
  for (std::size_t k = 1; k < count; ++k)
    errors.push_back(errors.back() - 50 * std::pow(static_cast<double>(k), -power));
  return errors;
}

// Iterations until the fall is within the tolerance, found by following the errors.
std::size_t iterations_left(std::size_t known, double power, double tolerance) {
  for (std::size_t count = known + 1;; ++count) {
    const std::vector<double> errors = falling(count, power);
    if (errors[count - 2] - errors[count - 1] <= tolerance * errors[count - 1]) return count - known;
  }
}

TEST(ExpectedIterations, FollowAPowerLaw) {
  for (const double power : {1.0, 1.5, 2.0, 3.0})
    for (const std::size_t known : {3U, 5U, 8U}) {
      const double tolerance = 2e-4;
      const auto left = static_cast<double>(iterations_left(known, power, tolerance));
      // The error falls a little between now and then, which the forecast leaves out.
      const double expected = expected_iterations(falling(known, power), tolerance, 100'000);
      EXPECT_NEAR(expected, left, 1 + 0.5 * left) << "power " << power << ", known " << known;
    }
}

TEST(ExpectedIterations, AreTheLimitWhereNothingFollows) {
  EXPECT_EQ(expected_iterations({}, 1e-4, 20), 20);
  EXPECT_EQ(expected_iterations(std::vector<double>{9, 8}, 1e-4, 18), 18);
  EXPECT_EQ(expected_iterations(std::vector<double>{9, 8, 8.5}, 1e-4, 17), 17);      // rises
  EXPECT_EQ(expected_iterations(std::vector<double>{9, 8.5, 7}, 1e-4, 17), 17);      // falls faster
  EXPECT_EQ(expected_iterations(std::vector<double>{9, 8, 7.5}, 0, 17), 17);         // no tolerance
  EXPECT_EQ(expected_iterations(std::vector<double>{9, 8, 7.999999}, 1e-4, 17), 1);  // about to end
  EXPECT_LE(expected_iterations(falling(4, 1), 1e-6, 17), 17);
}

}  // namespace
}  // namespace nearwise::cluster
