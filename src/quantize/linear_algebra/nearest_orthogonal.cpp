// QDWH iterations (Nakatsukasa, Bai, Gygi 2010): X <- X (a I + b X'X) (I + c X'X)^-1 changes only the
// singular values, which converge to 1. Computed as X <- (b / c) X + (a - b / c) (I + c XX')^-1 X: products
// and a Cholesky factorisation.
#include "quantize/linear_algebra/nearest_orthogonal.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "backend/backend.h"
#include "core/math/random.h"
#include "quantize/linear_algebra/solve_positive.h"
#include "quantize/linear_algebra/strip_matrix.h"

namespace nearwise::quantize {
namespace {

constexpr std::size_t width = StripMatrix::width;

// Weights a of one cycle, optimal for singular values in [1e-6, 1]; b = (a - 1)^2 / 4 and c = a + b - 1
// follow. Smaller values grow by 1e6 per cycle. A larger first weight would need fewer cycles and loses
// digits: the condition of I + c XX' is c.
constexpr std::array cycle = {25198.421, 29.385590, 3.7653854, 3.0018746};
// Values from rounding errors, 1e-16, are 1 after three cycles; noise below may be smaller in some
// directions.
constexpr std::size_t most_cycles = 12;
// One more iteration with a = 3 leaves the cube of this deviation from orthogonality.
constexpr double nearly_orthogonal = 1e-6;
// Added to matrices of norm 1, so that singular values of 0 do not stay 0.
constexpr double noise = 0x1p-52;

class PolarIteration {
 public:
  PolarIteration(const Context& context, std::size_t n)
      : context_(context), n_(n), x_(budget(), n, n), other_(budget(), n, n), gram_(budget(), n, n) {}

  static std::uint64_t bytes(std::size_t n) { return 3 * StripMatrix::bytes(n, n); }

  // False if it does not converge; the matrix is then unchanged.
  bool run(std::span<double> matrix, double norm) {
    for_each_strip([&](std::size_t strip) { x_.clear(strip); });
    const Random random(0);
    for_each_row([&](std::size_t i) {
      for (std::size_t j = 0; j < n_; ++j)
        x_(i, j) =
            matrix[i * n_ + j] / norm + noise / static_cast<double>(n_) * (random.uniform(i * n_ + j) - 0.5);
    });
    if (!iterate()) return false;
    for_each_row([&](std::size_t i) {
      for (std::size_t j = 0; j < n_; ++j) matrix[i * n_ + j] = x_(i, j);
    });
    return true;
  }

 private:
  MemoryBudget& budget() const { return *context_.state().budget; }

  void for_each_row(const auto& body) const {
    context_.state().threads->for_each(x_.row_blocks(), [&](std::size_t block) {
      context_.state().cancel.check();
      for (std::size_t row = block * width; row < std::min((block + 1) * width, n_); ++row) body(row);
    });
  }

  void for_each_strip(const auto& body) const {
    context_.state().threads->for_each(x_.strips(), [&](std::size_t strip) {
      context_.state().cancel.check();
      body(strip);
    });
  }

  bool iterate() {
    for (std::size_t step = 0; step < most_cycles * cycle.size(); ++step) {
      multiply();
      const bool last = deviation() < nearly_orthogonal;
      improve(last ? 3 : cycle[step % cycle.size()]);
      if (last) return true;
    }
    return false;
  }

  // gram = -XX', above the diagonal.
  void multiply() {
    const std::size_t blocks = x_.row_blocks();
    for_each_strip([&](std::size_t strip) {
      for (std::size_t row = 0; row < blocks; ++row)
        transpose_block(x_.block(strip, row), other_.block(row, strip));
      gram_.clear(strip);
    });
    subtract_products(context_.state(), {.left = other_.view(),
                                         .right = other_.view(),
                                         .sums = gram_.view(),
                                         .terms = {0, blocks},
                                         .left_strips = {0, blocks},
                                         .right_strips = {0, blocks},
                                         .upper = true});
  }

  // The largest element of XX' - I.
  double deviation() {
    std::vector<double> of_rows(n_, 0.0);
    for_each_row([&](std::size_t i) {
      for (std::size_t j = i; j < n_; ++j)
        of_rows[i] = std::max(of_rows[i], std::abs(gram_(i, j) + (i == j ? 1 : 0)));
    });
    return std::ranges::max(of_rows);
  }

  void improve(double a) {
    const double b = (a - 1) * (a - 1) / 4;
    const double c = a + b - 1;
    const std::size_t strip_elements = x_.row_blocks() * width * width;
    for_each_strip([&](std::size_t strip) {
      std::copy_n(x_.block(0, strip), strip_elements, other_.block(0, strip));
      double* const gram = gram_.block(0, strip);
      for (std::size_t i = 0; i < strip_elements; ++i) gram[i] *= -c;
      for (std::size_t i = 0; i < width; ++i) gram[(strip * width + i) * width + i] += 1;
    });
    solve_positive(context_, gram_, other_);
    for_each_strip([&](std::size_t strip) {
      double* const x = x_.block(0, strip);
      const double* const solved = other_.block(0, strip);
      for (std::size_t i = 0; i < strip_elements; ++i) x[i] = b / c * x[i] + (a - b / c) * solved[i];
    });
  }

  const Context& context_;
  const std::size_t n_;
  StripMatrix x_;
  StripMatrix other_;  // X', or (I + c XX')^-1 X
  StripMatrix gram_;
};

// At least the largest singular value. The largest element is divided out, so that squares stay in range.
double frobenius_norm(const Context& context, std::span<const double> matrix, std::size_t n) {
  double largest = 0;
  for (const double element : matrix) largest = std::max(largest, std::abs(element));
  if (largest == 0) return 0;
  double sum = 0;
  for (std::size_t row = 0; row < n; ++row) {
    context.state().cancel.check();
    for (const double element : matrix.subspan(row * n, n)) {
      const double share = element / largest;
      sum += share * share;
    }
  }
  return largest * std::sqrt(sum);
}

}  // namespace

std::uint64_t nearest_orthogonal_bytes(std::size_t n) { return PolarIteration::bytes(n); }

bool nearest_orthogonal(const Context& context, std::span<double> matrix, std::size_t n) {
  const double norm = frobenius_norm(context, matrix, n);
  if (norm == 0) {
    for (std::size_t i = 0; i < n; ++i) matrix[i * n + i] = 1;
    return true;
  }
  return PolarIteration(context, n).run(matrix, norm);
}

}  // namespace nearwise::quantize
