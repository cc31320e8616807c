// Householder reduction to a tridiagonal matrix, then implicit QL iterations whose rotations are applied to
// the axes.
#include "quantize/linear_algebra/eigenvectors.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "core/check.h"
#include "quantize/linear_algebra/tridiagonal.h"

namespace nearwise::quantize {
namespace {

constexpr std::size_t width = StripMatrix::width;
// Rotations collected before they are applied to a strip of axes: about 2 ms.
constexpr std::size_t most_rotations = 1 << 16;
// About two iterations per eigenvalue are typical.
constexpr std::size_t most_iterations = 100;

struct Rotation {
  double cosine;
  double sine;
};

// Rotations of axes i and i + 1 for i = first - 1, first - 2, ...
struct Sweep {
  std::size_t first;
  std::size_t count;
};

// Applies rotations to the rows of axes, a strip of columns per task.
class Rotations {
 public:
  Rotations(const Context& context, StripMatrix& axes) : context_(context), axes_(axes) {
    rotations_.reserve(most_rotations);
  }

  void begin_sweep(std::size_t first) { sweeps_.push_back({first, 0}); }
  void add(Rotation rotation) {
    rotations_.push_back(rotation);
    ++sweeps_.back().count;
  }
  void end_sweep() {
    if (rotations_.size() + axes_.row_blocks() * width > most_rotations) apply();
  }

  void apply() {
    context_.state().threads->for_each(axes_.strips(), [&](std::size_t strip) {
      context_.state().cancel.check();
      const Rotation* rotation = rotations_.data();
      for (const Sweep& sweep : sweeps_)
        for (std::size_t i = sweep.first; i > sweep.first - sweep.count; --i)
          rotate(axes_.block(0, strip) + (i - 1) * width, *rotation++);
    });
    sweeps_.clear();
    rotations_.clear();
  }

 private:
  static void rotate(double* rows, const Rotation& rotation) {
    for (std::size_t c = 0; c < width; ++c) {
      const double upper = rows[c];
      const double lower = rows[width + c];
      rows[c] = rotation.cosine * upper - rotation.sine * lower;
      rows[width + c] = rotation.sine * upper + rotation.cosine * lower;
    }
  }

  const Context& context_;
  StripMatrix& axes_;
  std::vector<Rotation> rotations_;
  std::vector<Sweep> sweeps_;
};

// QL iterations with Wilkinson's shift. The diagonal becomes the eigenvalues.
class TridiagonalIteration {
 public:
  TridiagonalIteration(Tridiagonal& matrix, Rotations& rotations)
      : diagonal_(matrix.diagonal), off_diagonal_(matrix.off_diagonal), rotations_(rotations) {}

  void run() {
    for (std::size_t first = 0; first < diagonal_.size(); ++first) {
      std::size_t iterations = 0;
      for (std::size_t end = block_end(first); end != first; end = block_end(first)) {
        if (++iterations > most_iterations) fail(ErrorCode::internal, "eigenvectors: no convergence");
        sweep(first, end);
      }
    }
    rotations_.apply();
  }

 private:
  // The last row of the unreduced block that begins at `first`: its off-diagonal element is negligible.
  std::size_t block_end(std::size_t first) {
    constexpr double epsilon = std::numeric_limits<double>::epsilon();
    // Far below the rounding errors of a matrix with elements up to 1; ends iterations at zero eigenvalues.
    constexpr double floor = epsilon * 0x1p-20;
    std::size_t end = first;
    while (end + 1 < diagonal_.size() &&
           std::abs(off_diagonal_[end]) >
               epsilon / 2 * (std::abs(diagonal_[end]) + std::abs(diagonal_[end + 1])) + floor)
      ++end;
    if (end + 1 < diagonal_.size()) off_diagonal_[end] = 0;
    return end;
  }

  void sweep(std::size_t first, std::size_t end) {
    rotations_.begin_sweep(end);
    const double half = (diagonal_[first + 1] - diagonal_[first]) / (2 * off_diagonal_[first]);
    const double root = std::sqrt(half * half + 1);
    const double shift = diagonal_[first] - off_diagonal_[first] / (half < 0 ? half - root : half + root);
    // The current rotation: its angle, the shift it moves along the diagonal, and the bulge outside the band.
    double cosine = 1;
    double sine = 1;
    double moved = 0;
    double bulge = diagonal_[end] - shift;
    for (std::size_t i = end; i-- > first;) {
      const double outside = sine * off_diagonal_[i];
      const double inside = cosine * off_diagonal_[i];
      const double length = std::sqrt(outside * outside + bulge * bulge);
      off_diagonal_[i + 1] = length;
      if (length == 0) {
        // The block splits here.
        diagonal_[i + 1] -= moved;
        off_diagonal_[end] = 0;
        rotations_.end_sweep();
        return;
      }
      sine = outside / length;
      cosine = bulge / length;
      const double lower = diagonal_[i + 1] - moved;
      const double difference = (diagonal_[i] - lower) * sine + 2 * cosine * inside;
      moved = sine * difference;
      diagonal_[i + 1] = lower + moved;
      bulge = cosine * difference - inside;
      rotations_.add({cosine, sine});
    }
    diagonal_[first] -= moved;
    off_diagonal_[first] = bulge;
    off_diagonal_[end] = 0;
    rotations_.end_sweep();
  }

  std::vector<double>& diagonal_;
  std::vector<double>& off_diagonal_;
  Rotations& rotations_;
};

void fix_sign(std::span<double> axis) {
  const auto largest = std::ranges::max_element(axis, {}, [](double element) { return std::abs(element); });
  if (*largest >= 0) return;
  for (double& element : axis) element = -element;
}

// The power of two above the largest element: dividing by it rounds nothing.
double scale_of(std::span<const double> matrix) {
  double largest = 0;
  for (const double element : matrix) largest = std::max(largest, std::abs(element));
  int exponent = 0;
  std::frexp(largest, &exponent);
  return std::ldexp(1.0, std::clamp(exponent, -1000, 1000));
}

}  // namespace

std::uint64_t eigenvectors_bytes(std::size_t n) {
  return StripMatrix::bytes(n, n) + buffer_bytes(most_rotations, sizeof(Rotation));
}

void eigenvectors(const Context& context, std::span<double> matrix, std::span<double> values) {
  const std::size_t n = values.size();
  MemoryBudget& budget = *context.state().budget;
  const Reservation rotation_bytes(budget, buffer_bytes(most_rotations, sizeof(Rotation)));
  StripMatrix axes(budget, n, n);
  const double scale = scale_of(matrix);
  for (std::size_t row = 0; row < n; ++row) {
    context.state().cancel.check();
    for (double& element : matrix.subspan(row * n, n)) element /= scale;
  }
  Tridiagonal reduced = reduce_to_tridiagonal(context, matrix, n);
  expand_reflections(context, matrix, reduced, axes);
  Rotations rotations(context, axes);
  TridiagonalIteration(reduced, rotations).run();
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return reduced.diagonal[i]; });
  context.state().threads->for_each(n, [&](std::size_t i) {
    context.state().cancel.check();
    values[i] = reduced.diagonal[order[i]] * scale;
    const std::span<double> axis = matrix.subspan(i * n, n);
    for (std::size_t j = 0; j < n; ++j) axis[j] = axes(order[i], j);
    fix_sign(axis);
  });
}

}  // namespace nearwise::quantize
