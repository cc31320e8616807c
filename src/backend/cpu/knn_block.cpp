// The blocked search: scans packed base rows for packed queries, then finishes with exact distances.
#include <algorithm>

#include "backend/cpu/operations.h"
#include "backend/cpu/prepared_rows.h"
#include "backend/cpu/stream.h"
#include "backend/cpu/top_k.h"
#include "core/checked.h"
#include "core/progress.h"

namespace nearwise::cpu {
namespace {

// A group of queries that one task scans must stay in the second-level cache while a base panel passes.
constexpr std::size_t group_bytes = 192 << 10;
// Tasks per thread: the last ones to finish leave other threads idle for at most 1/16 of the block.
constexpr std::size_t tasks_per_thread = 16;

std::size_t group_panels(const PackedRows& queries, int threads) {
  const std::size_t in_cache = group_bytes / (queries.dim * queries.width * sizeof(float));
  const std::size_t to_share = queries.panel_count() / (tasks_per_thread * static_cast<std::size_t>(threads));
  return std::max<std::size_t>(1, std::min(in_cache, std::max<std::size_t>(to_share, 4)));
}

// Multiplications between two looks at the cancel flag: under a millisecond with AVX-512, tens without vectors.
constexpr std::size_t step_products = 16 << 20;

void make_room(void* owner, std::size_t query) { static_cast<CandidateTopK*>(owner)->make_room(query); }

}  // namespace

KnnCosts knn_costs(const Stream& stream, const KnnCostsArgs& args) {
  const CpuStream& cpu = cpu_stream(stream);
  const ScanPanelsKernels& scan = cpu.scan_panels;
  const std::uint64_t per_thread =
      PackedRows::scratch_bytes(args.dim, std::max(scan.base_width, scan.query_width)) +
      RowEvaluator::bytes(args.dim);
  return {.bytes_per_query = PackedRows::bytes_per_row(args.dim, RowsRole::queries) +
                             CandidateTopK::bytes_per_query(args.k, scan.base_width),
          .bytes_per_base_row = PackedRows::bytes_per_row(args.dim, RowsRole::base),
          // Alignment of a dozen buffers, and scratch.
          .fixed_bytes = 2048 + static_cast<std::uint64_t>(cpu.threads().count()) * per_thread,
          .direct_bytes_per_query = RowEvaluator::bytes(args.dim) + args.k * sizeof(Answer),
          .query_granule = scan.query_width,
          .base_granule = scan.base_width};
}

void knn_block(Stream& stream, const KnnBlockArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  const auto& queries = static_cast<const PackedRows&>(args.queries);
  const auto& block = static_cast<const PackedRows&>(args.block);
  auto& best = static_cast<CandidateTopK&>(args.best);
  best.begin_block(args.base, block.largest_norm);

  const std::size_t panels = group_panels(queries, cpu.threads().count());
  cpu.threads().for_each(divide_up(queries.panel_count(), panels), [&](std::size_t group) {
    const std::size_t first_panel = group * panels;
    const std::size_t panel_count = std::min(panels, queries.panel_count() - first_panel);
    const std::size_t first_query = first_panel * queries.width;
    const std::size_t query_count = std::min(panel_count * queries.width, queries.rows - first_query);
    const std::size_t panel_products = block.dim * block.width * panel_count * queries.width;
    const std::size_t step = std::max<std::size_t>(1, step_products / panel_products);
    for (std::size_t first = 0; first < block.panel_count(); first += step) {
      cpu.context.cancel.check();
      cpu.scan_panels.scan({.query_panels = queries.panel(first_panel),
                            .query_panel_count = panel_count,
                            .first_query = first_query,
                            .base_panels = block.panel(first),
                            .biases = block.biases.data() + first * block.width,
                            .base_panel_count = std::min(step, block.panel_count() - first),
                            .first_row = static_cast<std::uint32_t>(args.first_row + first * block.width),
                            .dim = block.dim,
                            .lists = best.lists(),
                            .make_room = make_room,
                            .owner = &best});
    }
    for (std::size_t query = first_query; query < first_query + query_count; ++query) {
      if (!best.scores_hold(query)) best.evaluate_range(query, args.first_row, args.block_rows);
    }
    if (args.progress != nullptr) args.progress->add(query_count * args.block_rows);
  });
}

void finish_top_k(Stream& stream, const FinishTopKArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  auto& best = static_cast<CandidateTopK&>(args.best);
  constexpr std::size_t task_queries = 16;
  cpu.threads().for_each(divide_up(best.queries(), task_queries), [&](std::size_t task) {
    cpu.context.cancel.check();
    const std::size_t end = std::min(best.queries(), (task + 1) * task_queries);
    for (std::size_t query = task * task_queries; query < end; ++query) {
      write_answers(best.finish(query), best.metric(), args.id_offset, args.ids.row(query),
                    args.distances.row(query));
    }
  });
}

}  // namespace nearwise::cpu
