#include "backend/cpu/rows/row_evaluator.h"

#include <algorithm>
#include <cmath>

#include "backend/cpu/kernels/prefetch.h"
#include "core/check.h"
#include "core/convert.h"
#include "core/distance.h"

namespace nearwise::cpu {

RowEvaluator::RowEvaluator(const CpuStream& stream, const RowsView& queries, const RowsView& base,
                           Metric metric)
    : queries_(queries), base_(base), metric_(metric) {
  if (queries.dim() > small_dim) large_query_ = Buffer<double>(stream.budget(), queries.dim());
  const auto type = static_cast<std::size_t>(base.type());
  switch (metric) {
    case Metric::sqeuclidean:
    case Metric::euclidean: function_ = stream.row_distance.difference[type]; return;
    case Metric::inner_product: function_ = stream.row_distance.product[type]; return;
    case Metric::cosine: break;
  }
  function_ = stream.row_distance.product_and_norm[type];
  query_function_ = stream.row_distance.product_and_norm[static_cast<std::size_t>(queries.type())];
}

void RowEvaluator::begin(std::size_t query) {
  row_to_double(queries_, query, this->query());
  if (query_function_ == nullptr) return;
  double unused = 0;
  query_function_({.query = this->query(),
                   .base = queries_.row(query),
                   .stride_bytes = 0,
                   .dim = queries_.dim(),
                   .rows = nullptr,
                   .count = 1,
                   .sums = &unused,
                   .norms = &query_norm_});
}

// Scattered rows: all are prefetched before the first is read.
void RowEvaluator::prefetch_row(const std::byte* row) const {
  prefetch(reinterpret_cast<std::uintptr_t>(row),
           std::min<std::size_t>(base_.dim() * element_size(base_.type()), 512));
}

void RowEvaluator::evaluate(const std::uint32_t* rows, std::size_t first, std::size_t count,
                            float* keys) const {
  for (std::size_t i = 0; rows != nullptr && i < count; ++i) prefetch_row(base_.row(rows[i]));
  evaluate({.base = base_.row(first), .stride_bytes = base_.stride_bytes(), .rows = rows, .count = count},
           keys);
}

void RowEvaluator::evaluate(const std::byte* const* rows, std::size_t count, float* keys) const {
  for (std::size_t i = 0; i < count; ++i) prefetch_row(rows[i]);
  evaluate({.addresses = rows, .count = count}, keys);
}

void RowEvaluator::evaluate(RowDistanceArgs args, float* keys) const {
  NEARWISE_ASSERT(args.count <= batch);
  double sums[batch];
  double norms[batch];
  args.query = query();
  args.dim = base_.dim();
  args.sums = sums;
  args.norms = norms;
  function_(args);
  for (std::size_t i = 0; i < args.count; ++i) {
    const double norm = metric_ == Metric::cosine ? norms[i] : 0;
    // A zero query has distance 1 from every vector, except from one that is not finite.
    keys[i] = std::isfinite(norm) ? sort_key(metric_, reported(metric_, sums[i], query_norm_, norm)) : NAN;
  }
}

}  // namespace nearwise::cpu
