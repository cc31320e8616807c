#include "backend/cpu/lists/rerank.h"

#include <algorithm>
#include <limits>

#include "backend/cpu/kernels/prefetch.h"
#include "backend/cpu/rows/answers.h"
#include "core/distance.h"

namespace nearwise::cpu {
namespace {

// Rows that are estimated at once: kernels of integers share the loads of the query among so many.
constexpr std::size_t group = 4;
// Rows are asked for so many bytes before they are needed, at least a group of them.
constexpr std::size_t fetched_bytes = 6144;

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
      ahead_(std::max<std::size_t>(fetched_bytes / row_bytes_ / group, 1) * group),
      estimator_(stream, args.queries, args.rows, args.metric),
      evaluator_(stream, args.queries, args.rows, args.metric),
      estimates_(stream.budget(), args.candidates),
      found_(stream.budget(), std::min(args.k, args.candidates)) {}

std::uint64_t Reranker::bytes(std::size_t dim, std::size_t candidates) {
  return RowEstimator::bytes(dim) + RowEvaluator::bytes(dim) + buffer_bytes(candidates, sizeof(Estimate)) +
         buffer_bytes(candidates, sizeof(FoundRow));
}

void Reranker::fetch(std::uint32_t id) const {
  prefetch(reinterpret_cast<std::uintptr_t>(args_.rows.row(id)), row_bytes_);
}

// Rows lie anywhere: each is asked for whole, a few rows before it is needed. All at once would be more than the processor keeps
// track of.
void Reranker::estimate(std::span<const std::uint32_t> ids, std::span<const std::uint32_t> next) {
  const auto fetch_group = [&](std::size_t first) {
    for (std::size_t i = first; i < first + group; ++i) {
      if (i < ids.size())
        fetch(ids[i]);
      else if (i - ids.size() < next.size())
        fetch(next[i - ids.size()]);
    }
  };
  for (std::size_t first = 0; first < ahead_ && !fetched_; first += group) fetch_group(first);
  for (std::size_t first = 0; first < ids.size(); first += group) {
    fetch_group(first + ahead_);
    const std::size_t count = std::min(group, ids.size() - first);
    RowEstimator::Batch sums;
    estimator_.estimate(ids.data() + first, count, sums);
    for (std::size_t i = 0; i < count; ++i)
      estimates_[first + i] = {estimator_.lowest(sums, i), ids[first + i]};
  }
  fetched_ = !next.empty();
}

void Reranker::write_nearest(std::size_t query, std::span<const std::uint32_t> ids,
                             std::span<const std::uint32_t> next) {
  estimator_.begin(query);
  evaluator_.begin(query);
  estimate(ids, next);
  const std::span<Estimate> estimates = estimates_.span().first(ids.size());
  const std::size_t count = std::min(found_.size(), ids.size());
  // Those that look best are evaluated first; hardly any of the others can be better then.
  std::nth_element(estimates.begin(), estimates.begin() + static_cast<std::ptrdiff_t>(count), estimates.end(),
                   [](const Estimate& left, const Estimate& right) { return left.lowest < right.lowest; });
  std::size_t evaluated = 0;
  double limit = std::numeric_limits<double>::infinity();
  for (std::size_t first = 0; first < estimates.size();) {
    // There is no limit before there are k: they go together.
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
