// Exact search for few queries, without packing: reads every vector once, or those that are allowed,
// estimates its distance, and evaluates it if the estimate does not exclude it.
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>

#include "backend/cpu/kernels/prefetch.h"
#include "backend/cpu/operations.h"
#include "backend/cpu/rows/answers.h"
#include "backend/cpu/rows/finite_rows.h"
#include "backend/cpu/rows/row_estimator.h"
#include "backend/cpu/rows/row_evaluator.h"
#include "backend/cpu/stream.h"
#include "core/math/score_bound.h"
#include "core/progress.h"

namespace nearwise::cpu {
namespace {

// Rows between progress updates.
constexpr std::size_t step_rows = 16384;
// Of the first rows, the best estimates are evaluated first; otherwise most would be evaluated while the
// limit falls. A multiple of RowEstimator::batch.
constexpr std::size_t max_first_rows = 1024;

// The rows that are searched, by their places.
class DirectRows {
 public:
  explicit DirectRows(const KnnDirectArgs& args) : base_(args.base), rows_(args.rows) {}

  std::size_t count() const { return rows_ ? rows_->size() : base_.rows(); }
  std::size_t operator[](std::size_t place) const { return rows_ ? (*rows_)[place] : place; }
  void estimate(const RowEstimator& estimator, std::size_t first, std::size_t count,
                RowEstimator::Batch& out) const {
    if (!rows_) {
      estimator.estimate(first, count, out);
      return;
    }
    const std::byte* addresses[RowEstimator::batch];
    for (std::size_t i = 0; i < count; ++i) addresses[i] = base_.row((*rows_)[first + i]);
    estimator.estimate(addresses, count, out);
  }
  // Listed rows are scattered: the hardware does not prefetch them.
  void prefetch_batch(std::size_t first) const {
    if (!rows_) return;
    const std::size_t bytes = base_.dim() * element_size(base_.type());
    for (std::size_t i = first; i < std::min(count(), first + RowEstimator::batch); ++i)
      prefetch(reinterpret_cast<std::uintptr_t>(base_.row((*rows_)[i])), bytes);
  }

 private:
  const RowsView& base_;
  const std::optional<std::span<const std::uint32_t>> rows_;
};

// Search of one query over all places.
class DirectSearch {
 public:
  DirectSearch(CpuStream& cpu, const KnnDirectArgs& args, const DirectRows& rows, std::size_t query,
               Answer* heap, std::size_t k)
      : args_(args),
        rows_(rows),
        query_(query),
        cancel_(cpu.context.cancel),
        estimator_(cpu, args.queries, query, args.base, args.metric),
        evaluator_(cpu, args.queries, query, args.base, args.metric),
        bound_(args.metric, Products::f32, args.base.dim()),
        kernels_(cpu.candidate_list),
        heap_(heap),
        k_(k) {}

  // Scans places [0, count) first; count is at most max_first_rows.
  void begin(std::size_t count) {
    float lowest[max_first_rows];
    RowEstimator::Batch estimates;
    for (std::size_t first = 0; first < count; first += RowEstimator::batch) {
      cancel_.check();
      const std::size_t rows = std::min(RowEstimator::batch, count - first);
      rows_.estimate(estimator_, first, rows, estimates);
      for (std::size_t i = 0; i < rows; ++i)
        lowest[first + i] = std::nextafter(static_cast<float>(estimator_.lowest(estimates, i)),
                                           -std::numeric_limits<float>::infinity());
    }
    if (count <= k_) {
      for (std::size_t place = 0; place < count; ++place) evaluate(rows_[place]);
      return;
    }
    const float kth = kernels_.kth_score(lowest, count, k_);
    for (std::size_t place = 0; place < count; ++place)
      if (lowest[place] <= kth) evaluate(rows_[place]);
    for (std::size_t place = 0; place < count; ++place)
      if (lowest[place] > kth && lowest[place] <= limit_) evaluate(rows_[place]);
  }

  // Scans places [first, first + count), at most one batch.
  void scan(std::size_t first, std::size_t count) {
    RowEstimator::Batch estimates;
    rows_.estimate(estimator_, first, count, estimates);
    if (estimator_.all_exceed(estimates, limit_)) return;
    for (std::size_t i = 0; i < count; ++i) {
      if (estimator_.lowest(estimates, i) > limit_) continue;
      evaluate(rows_[first + i]);
    }
  }

  std::span<const Answer> finish() {
    std::sort_heap(heap_, heap_ + count_);
    return {heap_, count_};
  }

 private:
  void evaluate(std::size_t row) {
    if (++evaluated_ % RowEvaluator::batch == 0) cancel_.check();
    if (args_.denied.contains(query_, row)) return;
    float key;
    evaluator_.evaluate(nullptr, row, 1, &key);
    // Huge finite elements may also give an infinite distance: check the elements.
    if (!std::isfinite(key) && !is_finite_row(args_.base, row)) [[unlikely]]
      refuse_row(RowsRole::base, static_cast<std::size_t>(args_.id_offset) + row);
    offer_answer(heap_, count_, k_, {key, static_cast<std::uint32_t>(row)});
    if (count_ == k_) limit_ = bound_.limit_from_key(heap_[0].key);
  }

  const KnnDirectArgs& args_;
  const DirectRows& rows_;
  const std::size_t query_;
  const CancelFlag& cancel_;
  const RowEstimator estimator_;
  const RowEvaluator evaluator_;
  const ScoreBound bound_;
  const CandidateListKernels& kernels_;
  Answer* const heap_;  // [k] worst on top
  const std::size_t k_;
  std::size_t count_ = 0;
  std::size_t evaluated_ = 0;
  double limit_ = std::numeric_limits<double>::infinity();  // vectors with a larger value are no results
};

}  // namespace

void knn_direct(Stream& stream, const KnnDirectArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  const DirectRows places(args);
  const std::size_t rows = places.count();
  const std::size_t queries = args.queries.rows();
  const std::size_t k = std::min(args.k, rows);
  for (std::size_t query = 0; query < queries; ++query)
    if (!is_finite_row(args.queries, query)) refuse_row(RowsRole::queries, query);
  Buffer<Answer> heaps(cpu.budget(), queries * k);
  std::deque<DirectSearch> searches;
  for (std::size_t query = 0; query < queries; ++query)
    searches.emplace_back(cpu, args, places, query, heaps.data() + query * k, k);

  const std::size_t first_rows = std::min(rows, max_first_rows);
  for (DirectSearch& search : searches) search.begin(first_rows);
  // A batch of rows stays in the L1 cache for all queries.
  for (std::size_t first = first_rows; first < rows; first += RowEstimator::batch) {
    cpu.context.cancel.check();
    if (args.progress != nullptr && first != 0 && first % step_rows == 0)
      args.progress->add(step_rows * queries);
    const std::size_t count = std::min(RowEstimator::batch, rows - first);
    places.prefetch_batch(first + RowEstimator::batch);
    for (DirectSearch& search : searches) search.scan(first, count);
  }
  if (args.progress != nullptr && rows != 0) args.progress->add(((rows - 1) % step_rows + 1) * queries);
  for (std::size_t query = 0; query < queries; ++query)
    write_answers(searches[query].finish(), args.metric, args.id_offset, args.ids.row(query),
                  args.distances.row(query));
}

}  // namespace nearwise::cpu
