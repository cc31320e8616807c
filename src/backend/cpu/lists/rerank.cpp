#include "backend/cpu/lists/rerank.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

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

Reranker::Reranker(const CpuStream& stream, const ListSearchArgs& args, const ListNumbers& numbers,
                   const ListBound& bound)
    : args_(args),
      numbers_(numbers),
      bound_(bound),
      vector_bytes_(args.rerank.by_id()             ? args.codec.dim * element_size(args.rerank.rows.type())
                    : args.rerank.kept.is_in_file() ? args.rerank.kept.read_bytes()
                                                    : args.rerank.kept.bytes),
      ahead_(std::max<std::size_t>(prefetched_bytes / vector_bytes_ / group, 1) * group),
      shape_(nullptr, args.rerank.type(), 0, args.codec.dim,
             args.codec.dim * element_size(args.rerank.type())),
      estimator_(stream, args.queries, shape_, args.metric),
      evaluator_(stream, args.queries, shape_, args.metric),
      candidates_(stream.budget(), args.candidates),
      next_(stream.budget(), args.candidates),
      estimates_(stream.budget(), args.candidates),
      found_(stream.budget(), std::min(args.k, args.candidates)),
      decoded_(stream.budget(), args.rerank.by_id() || !args.rerank.kept.is_scaled()
                                    ? 0
                                    : RowEvaluator::batch * shape_.stride_bytes()) {}

std::uint64_t Reranker::bytes(std::size_t dim, std::size_t candidates) {
  return RowEstimator::bytes(dim) + RowEvaluator::bytes(dim) +
         2 * buffer_bytes(candidates, sizeof(Candidate)) + buffer_bytes(candidates, sizeof(Estimate)) +
         buffer_bytes(candidates, sizeof(FoundRow)) + buffer_bytes(RowEvaluator::batch * dim, sizeof(float));
}

void Reranker::find(std::span<const std::uint32_t> rows, Buffer<Candidate>& out) const {
  // Ids and row numbers are scattered in memory: a batch is prefetched before the first is read.
  constexpr std::size_t batch = 64;
  const RerankVectors& vectors = args_.rerank;
  for (std::size_t begin = 0; begin < rows.size(); begin += batch) {
    const std::size_t end = std::min(rows.size(), begin + batch);
    for (std::size_t i = begin; i < end; ++i) {
      const ListNumbers::Place place = numbers_.find(rows[i]);
      const ListView& list = args_.lists[place.list];
      out[i] = {list.vectors + list.vector_row(place.row) * vectors.kept.bytes, list.ids + place.row};
      if (vectors.by_id())
        prefetch(reinterpret_cast<std::uintptr_t>(out[i].id), sizeof(Id));
      else if (vectors.kept.is_in_file())
        prefetch(reinterpret_cast<std::uintptr_t>(out[i].vector), sizeof(std::uint32_t));
    }
    if (!vectors.by_id() && !vectors.kept.is_in_file()) continue;
    for (std::size_t i = begin; i < end; ++i)
      out[i].vector = vectors.by_id() ? vectors.rows.row(static_cast<std::size_t>(*out[i].id))
                                      : vectors.kept.row_of(out[i].vector);
  }
}

void Reranker::prefetch_vector(const Candidate& candidate) const {
  prefetch(reinterpret_cast<std::uintptr_t>(candidate.vector), vector_bytes_);
}

const std::byte* Reranker::read(const Candidate& candidate, std::size_t place) {
  if (decoded_.size() == 0) return candidate.vector;
  return args_.rerank.kept.read(candidate.vector, decoded_.data() + place * shape_.stride_bytes());
}

// Vectors are scattered in memory: each is prefetched whole, a few vectors ahead. Prefetching all at once
// would exceed the processor's miss buffers.
void Reranker::estimate(std::size_t count, std::size_t next) {
  const auto prefetch_group = [&](std::size_t first) {
    for (std::size_t i = first; i < first + group; ++i) {
      if (i < count)
        prefetch_vector(candidates_[i]);
      else if (i - count < next)
        prefetch_vector(next_[i - count]);
    }
  };
  for (std::size_t first = 0; first < ahead_ && !prefetched_; first += group) prefetch_group(first);
  for (std::size_t first = 0; first < count; first += group) {
    prefetch_group(first + ahead_);
    const std::size_t size = std::min(group, count - first);
    const std::byte* vectors[group];
    for (std::size_t i = 0; i < size; ++i) vectors[i] = read(candidates_[first + i], i);
    RowEstimator::Batch sums;
    estimator_.estimate(vectors, size, sums);
    for (std::size_t i = 0; i < size; ++i)
      estimates_[first + i] = {estimator_.lowest(sums, i), static_cast<std::uint32_t>(first + i)};
  }
}

void Reranker::write_nearest(std::size_t query, std::span<const std::uint32_t> rows,
                             std::span<const std::uint32_t> next) {
  estimator_.begin(query);
  evaluator_.begin(query);
  if (prefetched_)
    std::swap(candidates_, next_);
  else
    find(rows, candidates_);
  find(next, next_);
  estimate(rows.size(), next.size());
  prefetched_ = !next.empty();
  const std::span<Estimate> estimates = estimates_.span().first(rows.size());
  const std::size_t count = std::min(found_.size(), rows.size());
  // Evaluating the best estimates first excludes most others.
  std::nth_element(estimates.begin(), estimates.begin() + static_cast<std::ptrdiff_t>(count), estimates.end(),
                   [](const Estimate& left, const Estimate& right) { return left.lowest < right.lowest; });
  std::size_t evaluated = 0;
  double limit = std::numeric_limits<double>::infinity();
  for (std::size_t first = 0; first < estimates.size();) {
    // There is no limit before k are evaluated: evaluate those in batches.
    const std::byte* vectors[RowEvaluator::batch];
    const Id* ids[RowEvaluator::batch];
    float keys[RowEvaluator::batch];
    const std::size_t most = first < count ? std::min(RowEvaluator::batch, count - first) : 1;
    std::size_t batch = 0;
    for (const Estimate& estimate : estimates.subspan(first, most))
      if (!(estimate.lowest > limit)) {
        const Candidate& candidate = candidates_[estimate.candidate];
        vectors[batch] = read(candidate, batch);
        ids[batch++] = candidate.id;
        prefetch(reinterpret_cast<std::uintptr_t>(candidate.id), sizeof(Id));
      }
    first += most;
    if (batch == 0) continue;
    evaluator_.evaluate(vectors, batch, keys);
    for (std::size_t i = 0; i < batch; ++i)
      offer_answer(found_.data(), evaluated, count, FoundRow{keys[i], *ids[i]});
    if (evaluated == count) limit = bound_.limit_from_key(found_[0].key);
  }
  const std::span<FoundRow> found = found_.span().first(count);
  std::sort_heap(found.begin(), found.end());
  write_found(found, args_, query);
}

}  // namespace nearwise::cpu
