// Square f64 matrices for decompositions, row after row.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/math/random.h"
#include "nearwise/context.h"
#include "support/knn_cases.h"

namespace nearwise::support {

inline std::vector<double> random_matrix(std::size_t rows, std::size_t cols, std::uint64_t seed) {
  const Random random(seed);
  std::vector<double> matrix(rows * cols);
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = random.normal(i);
  return matrix;
}

inline std::vector<double> transposed(const std::vector<double>& matrix, std::size_t n) {
  std::vector<double> result(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) result[j * n + i] = matrix[i * n + j];
  return result;
}

inline std::vector<double> product(const std::vector<double>& left, const std::vector<double>& right,
                                   std::size_t n) {
  std::vector<double> result(n * n, 0.0);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t j = 0; j < n; ++j) result[i * n + j] += left[i * n + k] * right[k * n + j];
  return result;
}

inline std::vector<double> diagonal_matrix(const std::vector<double>& elements) {
  std::vector<double> matrix(elements.size() * elements.size(), 0.0);
  for (std::size_t i = 0; i < elements.size(); ++i) matrix[i * elements.size() + i] = elements[i];
  return matrix;
}

// Columns of a random matrix made orthonormal, twice, so that rounding errors do not add up.
inline std::vector<double> random_orthogonal(std::size_t n, std::uint64_t seed) {
  std::vector<double> rows = random_matrix(n, n, seed);
  for (std::size_t i = 0; i < n; ++i) {
    double* const row = rows.data() + i * n;
    for (int pass = 0; pass < 2; ++pass)
      for (std::size_t before = 0; before < i; ++before) {
        double along = 0;
        for (std::size_t k = 0; k < n; ++k) along += row[k] * rows[before * n + k];
        for (std::size_t k = 0; k < n; ++k) row[k] -= along * rows[before * n + k];
      }
    double square = 0;
    for (std::size_t k = 0; k < n; ++k) square += row[k] * row[k];
    for (std::size_t k = 0; k < n; ++k) row[k] /= std::sqrt(square);
  }
  return rows;
}

inline double largest_difference(const std::vector<double>& left, const std::vector<double>& right) {
  double largest = 0;
  for (std::size_t i = 0; i < left.size(); ++i) largest = std::max(largest, std::abs(left[i] - right[i]));
  return largest;
}

// The largest deviation of the products of rows from those of orthonormal ones.
inline double orthogonality_error(const std::vector<double>& rows, std::size_t n) {
  return largest_difference(product(rows, transposed(rows, n), n),
                            diagonal_matrix(std::vector<double>(n, 1.0)));
}

// Every instruction set, and several numbers of threads.
inline std::vector<Context> every_way_to_compute() {
  std::vector<Context> contexts = every_instruction_set();
  for (const int threads : {1, 2, 5}) contexts.push_back(Context::cpu({.threads = threads}));
  return contexts;
}

}  // namespace nearwise::support
