#include "backend/cpu/rows/row_estimator.h"

#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "backend/cpu/rows/choose_scan.h"
#include "core/check.h"
#include "core/convert.h"

namespace nearwise::cpu {
namespace {

constexpr double no_bound = -std::numeric_limits<double>::infinity();

// Squared norms outside this range are near the f32 range limits, where products underflow or overflow.
constexpr double min_squares = 0x1p-100;
constexpr double max_squares = 0x1p100;
bool is_ordinary(double squares) { return squares >= min_squares && squares <= max_squares; }

}  // namespace

RowEstimator::RowEstimator(const CpuStream& stream, const RowsView& queries, const RowsView& base,
                           Metric metric)
    : queries_(queries),
      base_(base),
      metric_(metric),
      query_(stream.budget(), queries.dim()),
      integer_query_(stream.budget(), queries.dim()) {
  const auto type = static_cast<std::size_t>(base.type());
  const RowEstimateKernels& kernels = stream.row_estimate;
  float_function_ = metric == Metric::cosine          ? kernels.product_and_norm[type]
                    : metric == Metric::inner_product ? kernels.product[type]
                                                      : kernels.difference[type];
  const bool integers = base.type() == ElementType::u8 || base.type() == ElementType::i8;
  if (integers && metric != Metric::cosine && queries.dim() <= max_integer_dim / 2)
    integer_function_ =
        metric == Metric::inner_product ? kernels.integer_product[type] : kernels.integer_difference[type];
  // A difference, a square and the additions round by 2^-24 each; twice that covers the rounding of the sum
  // of absolute products.
  const auto dim = static_cast<double>(queries.dim());
  error_ = (dim + 8) * 0x1p-23;
  underflow_ = (dim + 8) * 0x1p-126;
}

void RowEstimator::begin(std::size_t query) {
  visit_element_type(queries_.type(), [&](auto tag) {
    const std::byte* const row = queries_.row(query);
    for (std::size_t i = 0; i < queries_.dim(); ++i) query_[i] = element<decltype(tag)>(row, i);
  });
  // Summed in independent chains to hide latency; used by cosine only.
  double squares[8] = {};
  for (std::size_t i = 0; i < query_.size() && metric_ == Metric::cosine; ++i)
    squares[i % std::size(squares)] += static_cast<double>(query_[i]) * query_[i];
  query_squares_ = std::accumulate(std::begin(squares), std::end(squares), 0.0);
  bool whole = integer_function_ != nullptr;  // all elements are integers from -128 to 255
  for (std::size_t i = 0; i < query_.size() && whole; ++i) {
    whole = query_[i] == std::floor(query_[i]) && query_[i] >= -128 && query_[i] <= 255;
    integer_query_[i] = whole ? static_cast<std::int16_t>(query_[i]) : std::int16_t{0};
  }
  function_ = whole ? integer_function_ : float_function_;
}

void RowEstimator::estimate(std::size_t first, std::size_t count, Batch& out) const {
  NEARWISE_ASSERT(count <= batch);
  out.count = count;
  function_({.query = query_.data(),
             .integer_query = integer_query_.data(),
             .base = base_.row(first),
             .stride_bytes = base_.stride_bytes(),
             .dim = base_.dim(),
             .count = count,
             .sums = out.sums,
             .others = out.others});
}

void RowEstimator::estimate(const std::byte* const* rows, std::size_t count, Batch& out) const {
  NEARWISE_ASSERT(count <= batch);
  out.count = count;
  function_({.query = query_.data(),
             .integer_query = integer_query_.data(),
             .dim = base_.dim(),
             .addresses = rows,
             .count = count,
             .sums = out.sums,
             .others = out.others});
}

bool RowEstimator::all_exceed(const Batch& estimates, double limit) const {
  if (metric_ == Metric::inner_product || metric_ == Metric::cosine) return false;
  // Larger sums have a lower bound above the limit; sums that overflowed or are NaN prove nothing.
  const double least = (limit + underflow_) / (1 - error_) * (1 + 0x1p-20);
  if (!(least < std::numeric_limits<float>::max())) return false;
  const auto threshold = static_cast<float>(least);
  unsigned passed = 0;
  for (std::size_t i = 0; i < estimates.count; ++i)
    passed += estimates.sums[i] > threshold && estimates.sums[i] <= std::numeric_limits<float>::max() ? 1 : 0;
  return passed == estimates.count;
}

double RowEstimator::lowest(const Batch& estimates, std::size_t row) const {
  const double sum = estimates.sums[row];
  double value = no_bound;
  switch (metric_) {
    case Metric::sqeuclidean:
    case Metric::euclidean: value = sum * (1 - error_) - underflow_; break;
    case Metric::inner_product: value = -sum - error_ * estimates.others[row] - underflow_; break;
    case Metric::cosine:
      if (is_ordinary(estimates.others[row]) && is_ordinary(query_squares_))
        value = 1 - sum / std::sqrt(query_squares_ * estimates.others[row]) - 2 * error_;
      break;
  }
  // Infinite or NaN if a sum overflowed or an element is not finite.
  return std::abs(value) <= std::numeric_limits<float>::max() ? value : no_bound;
}

}  // namespace nearwise::cpu
