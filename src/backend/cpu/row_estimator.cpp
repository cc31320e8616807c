#include "backend/cpu/row_estimator.h"

#include <cmath>
#include <limits>

#include "core/check.h"
#include "core/convert.h"

namespace nearwise::cpu {
namespace {

constexpr double nothing = -std::numeric_limits<double>::infinity();

// Squares of lengths outside this range come near the ends of f32, where products vanish or overflow.
constexpr double least_squares = 0x1p-100;
constexpr double most_squares = 0x1p100;
bool is_ordinary(double squares) { return squares >= least_squares && squares <= most_squares; }

}  // namespace

RowEstimator::RowEstimator(const CpuStream& stream, const RowsView& queries, std::size_t query,
                           const RowsView& base, Metric metric)
    : base_(base), metric_(metric), query_(stream.budget(), queries.dim()) {
  visit_element_type(queries.type(), [&](auto tag) {
    for (std::size_t i = 0; i < queries.dim(); ++i) {
      query_[i] = element<decltype(tag)>(queries.row(query), i);
      query_squares_ += static_cast<double>(query_[i]) * query_[i];
    }
  });
  const auto type = static_cast<std::size_t>(base.type());
  const RowEstimateKernels& kernels = stream.row_estimate;
  function_ = metric == Metric::cosine          ? kernels.product_and_norm[type]
              : metric == Metric::inner_product ? kernels.product[type]
                                                : kernels.difference[type];
  // A difference, a square and the additions round, each by 2^-24; twice that covers the sums of what may be lost being
  // rounded themselves.
  const auto dim = static_cast<double>(queries.dim());
  error_ = (dim + 8) * 0x1p-23;
  underflow_ = (dim + 8) * 0x1p-126;
}

void RowEstimator::estimate(std::size_t first, std::size_t count, double* lowest) const {
  NEARWISE_ASSERT(count <= batch);
  float sums[batch];
  float others[batch];
  function_({.query = query_.data(),
             .base = base_.row(first),
             .stride_bytes = base_.stride_bytes(),
             .dim = base_.dim(),
             .count = count,
             .sums = sums,
             .others = others});
  for (std::size_t i = 0; i < count; ++i) {
    const double sum = sums[i];
    switch (metric_) {
      case Metric::sqeuclidean:
      case Metric::euclidean: lowest[i] = sum * (1 - error_) - underflow_; break;
      case Metric::inner_product: lowest[i] = -sum - error_ * others[i] - underflow_; break;
      case Metric::cosine:
        lowest[i] = is_ordinary(others[i]) && is_ordinary(query_squares_)
                        ? 1 - sum / std::sqrt(query_squares_ * others[i]) - 2 * error_
                        : nothing;
        break;
    }
    // Infinity or NaN: a sum overflowed, or an element is not finite.
    if (!(std::abs(lowest[i]) <= std::numeric_limits<float>::max())) lowest[i] = nothing;
  }
}

}  // namespace nearwise::cpu
