#include "quantize/linear_algebra/tridiagonal.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "backend/backend.h"
#include "core/checked.h"

namespace nearwise::quantize {
namespace {

constexpr std::size_t width = StripMatrix::width;
// Elements that one task updates: about 0.05 ms.
constexpr std::size_t task_elements = 1 << 16;
// Squares of shorter columns would underflow; relative to elements up to 1 they are negligible.
constexpr double negligible = 0x1p-400;

// Eight partial sums at any vector width, so that vectorisation does not change the result.
double dot(const double* left, const double* right, std::size_t count) {
  constexpr std::size_t lanes = 8;
  std::array<double, lanes> sums{};
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += left[i + lane] * right[i + lane];
  for (std::size_t lane = 0; i < count; ++i, ++lane) sums[lane] += left[i] * right[i];
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

// An update A - v w' - w v' that has not been applied yet.
struct Pending {
  std::vector<double> v;
  std::vector<double> w;

  void apply(double* row, std::size_t index, std::size_t first, std::size_t end) const {
    const double of_v = v[index];
    const double of_w = w[index];
    for (std::size_t j = first; j < end; ++j) row[j] -= of_v * w[j] + of_w * v[j];
  }
};

// Applies the update to the rows and columns from `first` on, and multiplies the result by `vector`, in one
// pass.
void update_and_multiply(const Context& context, std::span<double> matrix, std::size_t n, std::size_t first,
                         const Pending& pending, const std::vector<double>& vector,
                         std::vector<double>& products) {
  const std::size_t task_rows = divide_up(task_elements, n - first);
  context.state().threads->for_each(divide_up(n - first, task_rows), [&](std::size_t task) {
    context.state().cancel.check();
    const std::size_t begin = first + task * task_rows;
    for (std::size_t i = begin; i < std::min(begin + task_rows, n); ++i) {
      double* const row = matrix.data() + i * n;
      pending.apply(row, i, first, n);
      products[i] = dot(row + first, vector.data() + first, n - first);
    }
  });
}

}  // namespace

Tridiagonal reduce_to_tridiagonal(const Context& context, std::span<double> matrix, std::size_t n) {
  Tridiagonal out{std::vector<double>(n), std::vector<double>(n, 0.0), std::vector<double>(n, 0.0)};
  Pending pending{std::vector<double>(n, 0.0), std::vector<double>(n, 0.0)};
  std::vector<double> vector(n, 0.0);
  std::vector<double> products(n, 0.0);
  for (std::size_t k = 0; k < n; ++k) {
    double* const row = matrix.data() + k * n;
    pending.apply(row, k, k, n);
    out.diagonal[k] = row[k];
    if (k + 1 == n) break;
    const std::size_t first = k + 1;
    const std::size_t count = n - first;
    const double norm = std::sqrt(dot(row + first, row + first, count));
    out.off_diagonal[k] = norm < negligible ? 0 : row[first];
    // No reflection is needed for the last element, or if all others are zero.
    if (norm >= negligible && std::any_of(row + first + 1, row + n, [](double x) { return x != 0; })) {
      // Reflected to -sign(x) * norm, to avoid cancellation.
      out.scales[k] = 1 / (norm * (norm + std::abs(row[first])));
      out.off_diagonal[k] = row[first] < 0 ? norm : -norm;
      row[first] -= out.off_diagonal[k];
    }
    std::copy(row + first, row + n, vector.begin() + static_cast<std::ptrdiff_t>(first));
    update_and_multiply(context, matrix, n, first, pending, vector, products);
    const double scale = out.scales[k];
    const double along = scale * scale / 2 * dot(products.data() + first, vector.data() + first, count);
    for (std::size_t i = first; i < n; ++i) {
      pending.v[i] = vector[i];
      pending.w[i] = scale * products[i] - along * vector[i];
    }
  }
  return out;
}

void expand_reflections(const Context& context, std::span<const double> matrix, const Tridiagonal& reduced,
                        StripMatrix& axes) {
  const std::size_t n = reduced.diagonal.size();
  // Columns of Q = H_0 H_1 ... I, a strip of them per task. Reflection k does not change unit vectors j <= k.
  context.state().threads->for_each(axes.strips(), [&](std::size_t strip) {
    double* const columns = axes.block(0, strip);
    axes.clear(strip);
    const std::size_t end = std::min((strip + 1) * width, n);
    for (std::size_t j = strip * width; j < end; ++j) columns[j * width + j % width] = 1;
    for (std::size_t k = end - 1; k-- > 0;) {
      if (reduced.scales[k] == 0) continue;
      context.state().cancel.check();
      const double* const vector = matrix.data() + k * n;
      std::array<double, width> sums{};
      for (std::size_t i = k + 1; i < n; ++i)
        for (std::size_t c = 0; c < width; ++c) sums[c] += vector[i] * columns[i * width + c];
      for (double& sum : sums) sum *= reduced.scales[k];
      for (std::size_t i = k + 1; i < n; ++i)
        for (std::size_t c = 0; c < width; ++c) columns[i * width + c] -= vector[i] * sums[c];
    }
  });
  // Transposes Q: swaps pairs of blocks.
  context.state().threads->for_each(axes.strips(), [&](std::size_t strip) {
    std::array<double, width * width> above;
    for (std::size_t row = 0; row <= strip; ++row) {
      std::copy_n(axes.block(row, strip), above.size(), above.data());
      transpose_block(axes.block(strip, row), axes.block(row, strip));
      transpose_block(above.data(), axes.block(strip, row));
    }
  });
}

}  // namespace nearwise::quantize
