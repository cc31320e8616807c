// Few queries: every row is read once and its distance evaluated as it is reported. No packing, no bound.
#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/cpu/finite_rows.h"
#include "backend/cpu/operations.h"
#include "backend/cpu/stream.h"
#include "backend/cpu/top_k.h"
#include "core/progress.h"

namespace nearwise::cpu {
namespace {

// Rows between two reports to the progress meter.
constexpr std::size_t step_rows = 16384;

}  // namespace

void knn_direct(Stream& stream, const KnnDirectArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  const std::size_t rows = args.base.rows();
  const std::size_t k = std::min(args.k, rows);
  std::vector<RowEvaluator> evaluators;
  for (std::size_t query = 0; query < args.queries.rows(); ++query)
    if (!is_finite_row(args.queries, query)) refuse_row(RowsRole::queries, query);
  for (std::size_t query = 0; query < args.queries.rows(); ++query)
    evaluators.emplace_back(cpu, args.queries, query, args.base, args.metric);
  Buffer<Answer> heaps(cpu.budget(), args.queries.rows() * k);
  std::vector<std::size_t> counts(args.queries.rows(), 0);

  float keys[RowEvaluator::batch];
  for (std::size_t first = 0; first < rows; first += RowEvaluator::batch) {
    cpu.context.cancel.check();
    if (args.progress != nullptr && first != 0 && first % step_rows == 0)
      args.progress->add(step_rows * args.queries.rows());
    const std::size_t count = std::min(RowEvaluator::batch, rows - first);
    for (std::size_t query = 0; query < args.queries.rows(); ++query) {
      evaluators[query].evaluate(nullptr, first, count, keys);
      Answer* const heap = heaps.data() + query * k;
      std::size_t& size = counts[query];
      for (std::size_t i = 0; i < count; ++i) {
        // Huge but finite elements may be reported as infinite too: look at the row itself.
        if (!std::isfinite(keys[i]) && !is_finite_row(args.base, first + i)) [[unlikely]]
          refuse_row(RowsRole::base, static_cast<std::size_t>(args.id_offset) + first + i);
        offer_answer(heap, size, k, {keys[i], static_cast<std::uint32_t>(first + i)});
      }
    }
  }
  if (args.progress != nullptr && rows != 0)
    args.progress->add(((rows - 1) % step_rows + 1) * args.queries.rows());
  for (std::size_t query = 0; query < args.queries.rows(); ++query) {
    Answer* const heap = heaps.data() + query * k;
    std::sort_heap(heap, heap + counts[query]);
    write_answers({heap, counts[query]}, args.metric, args.id_offset, args.ids.row(query),
                  args.distances.row(query));
  }
}

}  // namespace nearwise::cpu
