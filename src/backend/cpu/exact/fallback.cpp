#include "backend/cpu/exact/fallback.h"

#include <algorithm>
#include <limits>

#include "backend/cpu/exact/coarse_choice.h"
#include "backend/cpu/rows/choose_scan.h"
#include "backend/cpu/rows/finite_rows.h"
#include "backend/cpu/rows/row_estimator.h"
#include "backend/cpu/rows/top_k.h"

namespace nearwise::cpu {
namespace {

// Queries and base vectors per scan: enough queries to amortize packing, or fewer if memory is scarce.
struct Batch {
  std::size_t queries;
  std::size_t rows;
};
Batch batch_for(const CpuStream& cpu) {
  constexpr std::uint64_t plenty = std::uint64_t{1} << 30;
  return cpu.budget().limit() == 0 || cpu.budget().limit() >= plenty ? Batch{768, 512} : Batch{24, 128};
}

// No score with it passes a cutoff.
constexpr float denied_bias = std::numeric_limits<float>::infinity();

void pack_all(CpuStream& cpu, const PrepareArgs& args, PackedRows& out) {
  PanelPacker packer(cpu, args, out);
  for (std::size_t index = 0; index < out.panel_count(); ++index) {
    const std::size_t bad = packer.pack(index);
    if (bad != PanelPacker::good_panel) refuse_row(args.role, args.first_row + bad);
  }
  out.longest = packer.longest();
}

}  // namespace

std::uint64_t fallback_bytes(const CpuStream& cpu, std::size_t dim, std::size_t k) {
  // The f32 scan, whose rows are the longest.
  const ScanKernel scan = fallback_kernel(cpu.set);
  const auto [batch_queries, batch_rows] = batch_for(cpu);
  return batch_queries * (PackedRows::bytes_per_row(scan, RowsRole::queries, dim) +
                          TopK::bytes_per_query(k, scan.base_width, TopK::default_spare(k))) +
         batch_rows * PackedRows::bytes_per_row(scan, RowsRole::base, dim) +
         2 * PackedRows::scratch_bytes(scan, dim) + RowEstimator::bytes(dim) + 2048;
}

std::uint64_t fallback_scan(CpuStream& cpu, const ScanKernel& kernel, const KnnBlockArgs& args,
                            Candidates& found, std::size_t first_query, std::size_t query_count,
                            std::size_t first_row, std::size_t end_row) {
  std::uint64_t evaluated = 0;
  if (CoarseChoice::are_few(query_count)) {
    for (std::size_t query = first_query; query < first_query + query_count; ++query)
      if (found.scores_hold(query)) found.estimate_range(query, first_row, end_row - first_row);
    return evaluated;
  }
  const std::size_t dim = args.base.dim();
  const auto [batch_queries, batch_rows] = batch_for(cpu);
  for (std::size_t done = 0; done < query_count; done += batch_queries) {
    const std::size_t first = first_query + done;
    const RowsView rows = found.query_rows().slice(first, std::min(batch_queries, query_count - done));
    PackedRows queries(cpu.budget(), kernel, RowsRole::queries, rows.rows(), dim);
    pack_all(cpu, {.rows = rows, .role = RowsRole::queries, .metric = found.metric(), .centre = args.centre},
             queries);
    const auto part = found.start_subset(queries, rows, first);
    for (std::size_t query = 0; query < rows.rows(); ++query)
      part->lower_limit(query, found.limit(first + query));
    for (std::size_t row = first_row; row < end_row; row += batch_rows) {
      cpu.context.cancel.check();
      const std::size_t count = std::min(batch_rows, end_row - row);
      PackedRows block(cpu.budget(), kernel, RowsRole::base, count, dim);
      pack_all(cpu,
               {.rows = args.base.slice(row, count),
                .role = RowsRole::base,
                .metric = found.metric(),
                .centre = args.centre,
                .first_row = row},
               block);
      if (args.allowed.any())
        for (std::size_t i = 0; i < count; ++i)
          if (!args.allowed.contains(row + i)) block.biases[i] = denied_bias;
      part->begin_block(args.base, block.longest, args.allowed);
      kernel.scan({.query_panels = queries.panel(0),
                   .query_panel_count = queries.panel_count(),
                   .first_query = 0,
                   .base_panels = block.panel(0),
                   .biases = block.biases.data(),
                   .base_panel_count = block.panel_count(),
                   .first_row = static_cast<std::uint32_t>(row),
                   .end_row = static_cast<std::uint32_t>(row + count),
                   .row_bytes = block.row_bytes,
                   .lists = part->lists(),
                   .make_room = Candidates::make_room_of,
                   .owner = part.get()});
      for (std::size_t query = 0; query < rows.rows(); ++query)
        if (!part->scores_hold(query)) part->evaluate_range(query, row, count);
    }
    // The caller evaluates queries whose scores have no error bound in the block.
    for (std::size_t query = 0; query < rows.rows(); ++query) {
      evaluated += part->evaluated(query);
      if (found.scores_hold(first + query)) found.take(first + query, part->evaluate_rest(query));
    }
  }
  return evaluated;
}

}  // namespace nearwise::cpu
