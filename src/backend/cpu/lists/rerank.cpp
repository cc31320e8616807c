#include "backend/cpu/lists/rerank.h"

#include <algorithm>
#include <limits>

#include "backend/cpu/kernels/prefetch.h"
#include "backend/cpu/rows/answers.h"
#include "core/distance.h"

namespace nearwise::cpu {
namespace {

// Vectors per estimate call: the integer kernels share the loads of the query among four.
constexpr std::size_t group = 4;
// Prefetch distance in bytes; at least one group.
constexpr std::size_t prefetched_bytes = 6144;

}  // namespace

void write_found(std::span<const FoundRow> found, const ListSearchArgs& args, std::size_t query) {
  const std::span<Id> ids = args.ids.row(query);
  const std::span<float> distances = args.distances.row(query);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const bool there = i < found.size();
    ids[i] = there ? found[i].id : no_id;
    distances[i] = there ? distance_of_key(args.metric, found[i].key) : padding_distance(args.metric);
  }
}

Reranker::Reranker(const CpuStream& stream, const ListSearchArgs& args, const ListBound& bound)
    : args_(args),
      bound_(bound),
      row_bytes_(args.rows.dim() * element_size(args.rows.type())),
      ahead_(std::max<std::size_t>(prefetched_bytes / row_bytes_ / group, 1) * group),
      estimator_(stream, args.queries, args.rows, args.metric),
      evaluator_(stream, args.queries, args.rows, args.metric),
      estimates_(stream.budget(), args.candidates),
      found_(stream.budget(), std::min(args.k, args.candidates)) {}

std::uint64_t Reranker::bytes(std::size_t dim, std::size_t candidates) {
  return RowEstimator::bytes(dim) + RowEvaluator::bytes(dim) + buffer_bytes(candidates, sizeof(Estimate)) +
         buffer_bytes(candidates, sizeof(FoundRow));
}

void Reranker::prefetch_row(std::uint32_t id) const {
  prefetch(reinterpret_cast<std::uintptr_t>(args_.rows.row(id)), row_bytes_);
}

// Vectors are scattered in memory: each is prefetched whole, a few vectors ahead. Prefetching all at once
// would exceed the processor's miss buffers.
void Reranker::estimate(std::span<const std::uint32_t> ids, std::span<const std::uint32_t> next) {
  const auto prefetch_group = [&](std::size_t first) {
    for (std::size_t i = first; i < first + group; ++i) {
      if (i < ids.size())
        prefetch_row(ids[i]);
      else if (i - ids.size() < next.size())
        prefetch_row(next[i - ids.size()]);
    }
  };
  for (std::size_t first = 0; first < ahead_ && !prefetched_; first += group) prefetch_group(first);
  for (std::size_t first = 0; first < ids.size(); first += group) {
    prefetch_group(first + ahead_);
    const std::size_t count = std::min(group, ids.size() - first);
    RowEstimator::Batch sums;
    estimator_.estimate(ids.data() + first, count, sums);
    for (std::size_t i = 0; i < count; ++i)
      estimates_[first + i] = {estimator_.lowest(sums, i), ids[first + i]};
  }
  prefetched_ = !next.empty();
}

void Reranker::write_nearest(std::size_t query, std::span<const std::uint32_t> ids,
                             std::span<const std::uint32_t> next) {
  estimator_.begin(query);
  evaluator_.begin(query);
  estimate(ids, next);
  const std::span<Estimate> estimates = estimates_.span().first(ids.size());
  const std::size_t count = std::min(found_.size(), ids.size());
  // Evaluating the best estimates first excludes most others.
  std::nth_element(estimates.begin(), estimates.begin() + static_cast<std::ptrdiff_t>(count), estimates.end(),
                   [](const Estimate& left, const Estimate& right) { return left.lowest < right.lowest; });
  std::size_t evaluated = 0;
  double limit = std::numeric_limits<double>::infinity();
  for (std::size_t first = 0; first < estimates.size();) {
    // There is no limit before k are evaluated: evaluate those in batches.
    std::uint32_t rows[RowEvaluator::batch];
    float keys[RowEvaluator::batch];
    const std::size_t most = first < count ? std::min(RowEvaluator::batch, count - first) : 1;
    std::size_t batch = 0;
    for (const Estimate& estimate : estimates.subspan(first, most))
      if (!(estimate.lowest > limit)) rows[batch++] = estimate.id;
    first += most;
    if (batch == 0) continue;
    evaluator_.evaluate(rows, 0, batch, keys);
    for (std::size_t i = 0; i < batch; ++i)
      offer_answer(found_.data(), evaluated, count, FoundRow{keys[i], static_cast<Id>(rows[i])});
    if (evaluated == count) limit = bound_.limit_from_key(found_[0].key);
  }
  const std::span<FoundRow> found = found_.span().first(count);
  std::sort_heap(found.begin(), found.end());
  write_found(found, args_, query);
}

}  // namespace nearwise::cpu
