// Blocked exact search: scans packed base vectors for packed queries, then evaluates the candidates.
#include <algorithm>
#include <cmath>

#include "backend/cpu/exact/coarse_choice.h"
#include "backend/cpu/exact/fallback.h"
#include "backend/cpu/exact/filtered_biases.h"
#include "backend/cpu/operations.h"
#include "backend/cpu/rows/choose_scan.h"
#include "backend/cpu/rows/prepared_rows.h"
#include "backend/cpu/rows/row_estimator.h"
#include "backend/cpu/rows/row_evaluator.h"
#include "backend/cpu/rows/scan_cut.h"
#include "backend/cpu/rows/top_k.h"
#include "backend/cpu/stream.h"
#include "core/checked.h"
#include "core/progress.h"

namespace nearwise::cpu {
namespace {

std::uint64_t evaluated_rows(const Candidates& found, std::size_t first_query, std::size_t query_count) {
  std::uint64_t sum = 0;
  for (std::size_t query = first_query; query < first_query + query_count; ++query)
    sum += found.evaluated(query);
  return sum;
}

}  // namespace

KnnCosts knn_costs(const Stream& stream, const KnnCostsArgs& args) {
  const CpuStream& cpu = cpu_stream(stream);
  const auto choose = args.coarse ? choose_screen : choose_scan;
  const ScanKernel scan = choose(cpu.set, args.metric, args.query_type, args.base_type, args.dim);
  const std::size_t spare = TopK::default_spare(args.k);
  const std::uint64_t per_thread = PackedRows::scratch_bytes(scan, args.dim) + RowEvaluator::bytes(args.dim) +
                                   buffer_bytes(spare + scan.base_width, sizeof(std::int64_t));
  const std::uint64_t fallback = is_coarse(scan.base_encoding) ? fallback_bytes(cpu, args.dim, args.k) : 0;
  return {.bytes_per_query = PackedRows::bytes_per_row(scan, RowsRole::queries, args.dim) +
                             TopK::bytes_per_query(args.k, scan.base_width, spare),
          .bytes_per_base_row = PackedRows::bytes_per_row(scan, RowsRole::base, args.dim),
          // 2048: alignment of a dozen buffers.
          .fixed_bytes = 2048 + static_cast<std::uint64_t>(cpu.threads().count()) * (per_thread + fallback),
          .direct_bytes_per_query =
              RowEstimator::bytes(args.dim) + RowEvaluator::bytes(args.dim) + args.k * sizeof(Answer),
          .query_granule = scan.query_width,
          .base_granule = scan.base_width,
          .form = reinterpret_cast<std::uintptr_t>(scan.scan),
          .masks_rows = FilteredBiases::can_mask(scan, args.dim),
          .denies_ids = true,
          .pair_ns = expected_pair_ns(scan, args.dim),
          .min_coarse_rows = CoarseChoice::min_rows(scan, args.k)};
}

void knn_block(Stream& stream, const KnnBlockArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  const auto& queries = static_cast<const PackedRows&>(args.queries);
  const auto& block = static_cast<const PackedRows&>(args.block);
  auto& found = static_cast<Candidates&>(args.found);
  found.begin_block(args.base, block.longest, args.allowed);
  const FilteredBiases biases(cpu, args, block);

  const bool is_scaled = block.scales.size() != 0;
  const std::size_t panels = group_panels(queries, cpu.threads().count());
  cpu.threads().for_each(divide_up(queries.panel_count(), panels), [&](std::size_t group) {
    const std::size_t first_panel = group * panels;
    const std::size_t panel_count = std::min(panels, queries.panel_count() - first_panel);
    const std::size_t first_query = first_panel * queries.width;
    const std::size_t query_count = std::min(panel_count * queries.width, queries.rows - first_query);
    const std::size_t step = step_panels(block, panel_count * queries.width);
    CoarseChoice choice(block.kernel, query_count, found.list_capacity(), args.base.rows(),
                        std::isfinite(found.limit(first_query)));
    for (std::size_t first = 0; first < block.panel_count();) {
      cpu.context.cancel.check();
      const std::size_t first_row = first * block.width;
      const std::size_t close_rows = choice.take_close_rows();
      if (close_rows != 0) {
        const std::size_t close_panels =
            divide_up(std::min(close_rows, args.block_rows - first_row), block.width);
        const std::size_t rows = std::min(close_panels * block.width, args.block_rows - first_row);
        const ScanKernel closer = choice.wants_f32() ? fallback_kernel(cpu.set)
                                                     : closer_kernel(cpu.set, block.kernel.base_encoding);
        choice.add_close(rows, fallback_scan(cpu, closer, args, found, first_query, query_count,
                                             args.first_row + first_row, args.first_row + first_row + rows));
        first += close_panels;
        continue;
      }
      const std::size_t panels_now = std::min(step, block.panel_count() - first);
      if (biases.any_allowed(first, panels_now)) {
        const std::uint64_t before = evaluated_rows(found, first_query, query_count);
        block.kernel.scan({.query_panels = queries.panel(first_panel),
                           .query_panel_count = panel_count,
                           .first_query = first_query,
                           .base_panels = block.panel(first),
                           .biases = biases.floats(first),
                           .integer_biases = biases.integers(first),
                           .half_biases = biases.halves(first),
                           .row_scales = block.scales.data() + (is_scaled ? first_row : 0),
                           .row_residuals = block.residuals.data() + (is_scaled ? first_row : 0),
                           .query_scales = queries.scales.data(),
                           .query_starts = queries.starts.data(),
                           .base_panel_count = panels_now,
                           .first_row = static_cast<std::uint32_t>(args.first_row + first_row),
                           .end_row = static_cast<std::uint32_t>(args.first_row + args.block_rows),
                           .row_bytes = block.row_bytes,
                           .allowed = biases.allowed(first),
                           .lists = found.lists(),
                           .make_room = Candidates::make_room_of,
                           .owner = &found});
        choice.add(panels_now * block.width, evaluated_rows(found, first_query, query_count) - before);
      }
      first += panels_now;
    }
    for (std::size_t query = first_query; query < first_query + query_count; ++query) {
      if (!found.scores_hold(query)) found.evaluate_range(query, args.first_row, args.block_rows);
    }
    if (args.progress != nullptr) args.progress->add(query_count * args.block_rows);
  });
}

void finish_top_k(Stream& stream, const FinishTopKArgs& args) {
  CpuStream& cpu = cpu_stream(stream);
  auto& found = static_cast<TopK&>(args.found);
  constexpr std::size_t task_queries = 16;
  cpu.threads().for_each(divide_up(found.queries(), task_queries), [&](std::size_t task) {
    cpu.context.cancel.check();
    AnswerSorter sorter(cpu.budget(), found.sorter_size());
    const std::size_t end = std::min(found.queries(), (task + 1) * task_queries);
    for (std::size_t query = task * task_queries; query < end; ++query) {
      write_answers(found.finish(query, sorter), found.metric(), args.id_offset, args.ids.row(query),
                    args.distances.row(query));
    }
  });
}

}  // namespace nearwise::cpu
