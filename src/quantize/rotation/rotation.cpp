// Rotation: argument and memory checks.
#include "nearwise/quantize/rotation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/checked.h"
#include "core/float_environment.h"
#include "core/progress.h"
#include "ops/check_rows.h"
#include "ops/finite_rows.h"
#include "ops/memory_limit.h"
#include "quantize/rotation/principal_axes.h"
#include "quantize/rotation/rotating.h"
#include "quantize/training_rows.h"

namespace nearwise {
namespace {

constexpr std::size_t default_training_rows = 65536;

using quantize::Direction;

// Largest deviation from orthonormal rows: matrices written with few digits pass.
constexpr double orthonormal_tolerance = 1e-4;

void check_orthonormal(std::size_t dim, std::size_t rotated_dim, std::span<const float> matrix) {
  for (std::size_t i = 0; i < rotated_dim; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double product = 0;
      for (std::size_t k = 0; k < dim; ++k)
        product += static_cast<double>(matrix[i * dim + k]) * static_cast<double>(matrix[j * dim + k]);
      require(std::abs(product - (i == j ? 1 : 0)) <= orthonormal_tolerance,
              "Rotation::from_matrix: rows must be orthonormal, the product of rows {} and {} is {}", i, j,
              product);
    }
}

Matrix<float> rotated(const char* operation, const Context& context, const RowsView& rows,
                      const Rotation& rotation, Direction direction) {
  const quantize::AxesView axes = {{rotation.matrix().data(), rotation.rotated_dim(), rotation.dim()},
                                   rotation.mean()};
  check_rows(operation, context, rows, rows);
  require(rows.dim() == axes.dim_before(direction), "{}: rows must have {} elements, got {}", operation,
          axes.dim_before(direction), rows.dim());
  const Context::State& state = context.state();
  state.cancel.check();
  const std::size_t dim = axes.dim_after(direction);
  const std::uint64_t result_bytes =
      buffer_bytes(checked_multiply(rows.rows(), dim, operation), sizeof(float));
  check_memory(operation, context,
               result_bytes + quantize::rotate_bytes(operation, context, axes, direction));
  const DefaultFloatEnvironment environment;
  check_finite(operation, context, rows);
  const Reservation reservation(*state.budget, result_bytes);
  Matrix<float> result(rows.rows(), dim);
  ProgressMeter progress(state.options.progress, state.clock, operation, rows.rows());
  quantize::rotate_rows(operation, context, rows, axes, direction, result.view(), &progress);
  progress.finish();
  return result;
}

}  // namespace

Rotation::Rotation(std::vector<float> matrix, std::vector<float> mean)
    : matrix_(std::move(matrix)), mean_(std::move(mean)) {}

Rotation Rotation::pca(const Context& context, RowsView rows, std::size_t dims, const PcaOptions& options) {
  constexpr const char* operation = "Rotation::pca";
  check_rows(operation, context, rows, rows);
  require(rows.place().kind == DeviceKind::cpu, "{}: rows must be on the host, got rows on {}", operation,
          name(rows.place()));
  require(rows.rows() >= 1, "{}: there must be at least 1 row, got 0", operation);
  require(dims >= 1 && dims <= rows.dim(), "{}: dims must be 1 to {}, got {}", operation, rows.dim(), dims);
  const DefaultFloatEnvironment environment;
  context.state().cancel.check();
  const std::size_t max_rows = options.training_rows.value_or(default_training_rows);
  require(max_rows >= 1, "{}: training_rows must be at least 1, got 0", operation);
  const RowsView shape = quantize::TrainingRows::shape(rows, max_rows);
  check_memory(operation, context,
               quantize::TrainingRows::bytes(rows, max_rows) + quantize::CentredRows::bytes(shape) +
                   quantize::principal_axes_bytes(rows.dim()));
  check_finite(operation, context, rows);
  const quantize::TrainingRows sample(context, rows, max_rows);
  const quantize::CentredRows centred(context, sample.view());
  const quantize::PrincipalAxes found = quantize::principal_axes(context, centred.view());
  std::vector<float> matrix(dims * rows.dim());
  std::ranges::transform(found.axes.span().first(matrix.size()), matrix.begin(),
                         [](double element) { return static_cast<float>(element); });
  return Rotation(std::move(matrix), centred.mean());
}

Rotation Rotation::from_matrix(std::size_t dim, std::size_t rotated_dim, std::span<const float> matrix,
                               std::span<const float> mean) {
  constexpr const char* operation = "Rotation::from_matrix";
  require(rotated_dim >= 1 && rotated_dim <= dim,
          "{}: there must be 1 to {} axes, as rows have {} elements, got {}", operation, dim, dim,
          rotated_dim);
  const std::size_t expected = checked_multiply(dim, rotated_dim, operation);
  require(matrix.size() == expected, "{}: the matrix must have {} numbers, got {}", operation, expected,
          matrix.size());
  require(mean.empty() || mean.size() == dim, "{}: the mean must have {} elements, got {}", operation, dim,
          mean.size());
  require(std::ranges::all_of(mean, [](float element) { return std::isfinite(element); }),
          "{}: every element of the mean must be finite", operation);
  check_orthonormal(dim, rotated_dim, matrix);
  std::vector<float> centre(mean.begin(), mean.end());
  centre.resize(dim, 0.0F);
  return Rotation({matrix.begin(), matrix.end()}, std::move(centre));
}

Rotation Rotation::identity(std::size_t dim) {
  require(dim >= 1, "Rotation::identity: the dimension must be at least 1, got 0");
  std::vector<float> matrix(checked_multiply(dim, dim, "Rotation::identity"), 0.0F);
  for (std::size_t i = 0; i < dim; ++i) matrix[i * dim + i] = 1;
  return Rotation(std::move(matrix), std::vector<float>(dim, 0.0F));
}

Matrix<float> Rotation::apply(const Context& context, RowsView rows) const {
  return rotated("Rotation::apply", context, rows, *this, Direction::forward);
}

Matrix<float> Rotation::reverse(const Context& context, RowsView rotated_rows) const {
  return rotated("Rotation::reverse", context, rotated_rows, *this, Direction::backward);
}

}  // namespace nearwise
