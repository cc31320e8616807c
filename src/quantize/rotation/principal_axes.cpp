#include "quantize/rotation/principal_axes.h"

#include <algorithm>

#include "backend/dispatch.h"
#include "core/checked.h"
#include "core/convert.h"
#include "quantize/linear_algebra/eigenvectors.h"

namespace nearwise::quantize {
namespace {

// Rows per task and partial sum; fixed, so that results do not depend on the number of threads.
constexpr std::size_t task_rows = 4096;

std::vector<float> mean_of(const Context& context, const RowsView& rows) {
  const Context::State& state = context.state();
  const std::size_t dim = rows.dim();
  const std::size_t tasks = divide_up(rows.rows(), task_rows);
  Buffer<double> sums(*state.budget, tasks * dim);
  std::fill_n(sums.data(), sums.size(), 0.0);
  state.threads->for_each(tasks, [&](std::size_t task) {
    state.cancel.check();
    double* const own = sums.data() + task * dim;
    visit_element_type(rows.type(), [&](auto tag) {
      for (std::size_t row = task * task_rows; row < std::min(rows.rows(), (task + 1) * task_rows); ++row)
        for (std::size_t i = 0; i < dim; ++i)
          own[i] += static_cast<double>(element<decltype(tag)>(rows.row(row), i));
    });
  });
  std::vector<float> mean(dim);
  for (std::size_t i = 0; i < dim; ++i) {
    double sum = 0;
    for (std::size_t task = 0; task < tasks; ++task) sum += sums[task * dim + i];
    mean[i] = static_cast<float>(sum / static_cast<double>(rows.rows()));
  }
  return mean;
}

}  // namespace

std::uint64_t CentredRows::bytes(const RowsView& rows) {
  return buffer_bytes(checked_multiply(rows.rows(), rows.dim(), "centred rows"), sizeof(float)) +
         buffer_bytes(divide_up(rows.rows(), task_rows) * rows.dim(), sizeof(double));
}

CentredRows::CentredRows(const Context& context, const RowsView& rows)
    : rows_(rows.rows()),
      mean_(mean_of(context, rows)),
      values_(*context.state().budget, rows.rows() * rows.dim()) {
  const Context::State& state = context.state();
  state.threads->for_each(divide_up(rows_, task_rows), [&](std::size_t task) {
    state.cancel.check();
    visit_element_type(rows.type(), [&](auto tag) {
      for (std::size_t row = task * task_rows; row < std::min(rows_, (task + 1) * task_rows); ++row)
        for (std::size_t i = 0; i < mean_.size(); ++i)
          values_[row * mean_.size() + i] = element<decltype(tag)>(rows.row(row), i) - mean_[i];
    });
  });
}

std::uint64_t principal_axes_bytes(std::size_t dim) {
  return buffer_bytes(dim * dim, sizeof(double)) + eigenvectors_bytes(dim);
}

PrincipalAxes principal_axes(const Context& context, const MatrixView<const float>& centred) {
  const std::size_t dim = centred.cols();
  PrincipalAxes found{Buffer<double>(*context.state().budget, dim * dim), std::vector<double>(dim)};
  const auto stream = open_stream(context);
  dispatch(&Ops::cross_products, "pca", *stream,
           CrossProductsArgs{centred, centred, {found.axes.data(), dim, dim}});
  eigenvectors(context, found.axes.span(), found.variances);
  // Rounding may make eigenvalues of degenerate data slightly negative.
  for (double& variance : found.variances)
    variance = std::max(0.0, variance) / static_cast<double>(centred.rows());
  return found;
}

}  // namespace nearwise::quantize
