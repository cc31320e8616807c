// Decompositions of small matrices in long double, by the simplest methods that are sure to end.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <vector>

namespace nearwise::oracle {

// Eigenvalues of a symmetric matrix [n, n], descending, by cyclic Jacobi rotations.
inline std::vector<long double> eigenvalues(const std::vector<double>& matrix, std::size_t n) {
  std::vector<long double> a(matrix.begin(), matrix.end());
  const auto at = [&](std::size_t i, std::size_t j) -> long double& { return a[i * n + j]; };
  for (int sweep = 0; sweep < 30; ++sweep)
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t q = p + 1; q < n; ++q) {
        if (at(p, q) == 0) continue;
        const long double ratio = (at(q, q) - at(p, p)) / (2 * at(p, q));
        const long double tangent = (ratio < 0 ? -1 : 1) / (std::abs(ratio) + std::sqrt(ratio * ratio + 1));
        const long double cosine = 1 / std::sqrt(tangent * tangent + 1);
        const long double sine = tangent * cosine;
        for (std::size_t k = 0; k < n; ++k) {
          const long double left = at(k, p);
          const long double right = at(k, q);
          at(k, p) = cosine * left - sine * right;
          at(k, q) = sine * left + cosine * right;
        }
        for (std::size_t k = 0; k < n; ++k) {
          const long double upper = at(p, k);
          const long double lower = at(q, k);
          at(p, k) = cosine * upper - sine * lower;
          at(q, k) = sine * upper + cosine * lower;
        }
      }
  std::vector<long double> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = at(i, i);
  std::ranges::sort(values, std::greater());
  return values;
}

// x with matrix * x = right, the matrix symmetric and positive definite, by Gaussian elimination.
inline std::vector<long double> solve(const std::vector<double>& matrix, const std::vector<double>& right) {
  const std::size_t n = right.size();
  std::vector<long double> a(matrix.begin(), matrix.end());
  std::vector<long double> x(right.begin(), right.end());
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t i = k + 1; i < n; ++i) {
      const long double factor = a[i * n + k] / a[k * n + k];
      for (std::size_t j = k; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
      x[i] -= factor * x[k];
    }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t j = i + 1; j < n; ++j) x[i] -= a[i * n + j] * x[j];
    x[i] /= a[i * n + i];
  }
  return x;
}

}  // namespace nearwise::oracle
