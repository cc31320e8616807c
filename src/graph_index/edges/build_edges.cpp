#include "graph_index/edges/build_edges.h"

#include <algorithm>
#include <numeric>

#include "backend/context_state.h"
#include "backend/dispatch.h"
#include "core/progress.h"

namespace nearwise::graph_index {
ReverseEdges reverse_edges(const Context& context, MatrixView<const std::int32_t> edges) {
  MemoryBudget& budget = *context.state().budget;
  const std::size_t rows = edges.rows();
  ReverseEdges reverse{Buffer<std::uint64_t>(budget, rows + 1), {}};
  std::fill_n(reverse.offsets.data(), rows + 1, std::uint64_t{0});
  const auto for_each_edge = [&](const auto& visit) {
    for (std::size_t row = 0; row < rows; ++row) {
      if (row % 4096 == 0) context.state().cancel.check();
      for (const std::int32_t target : edges.row(row)) {
        if (target == no_edge) break;
        visit(row, static_cast<std::size_t>(target));
      }
    }
  };
  for_each_edge([&](std::size_t, std::size_t target) { ++reverse.offsets[target + 1]; });
  for (std::size_t row = 0; row < rows; ++row) reverse.offsets[row + 1] += reverse.offsets[row];
  reverse.sources = Buffer<std::uint32_t>(budget, reverse.offsets[rows]);
  Buffer<std::uint64_t> next(budget, rows);
  std::copy_n(reverse.offsets.data(), rows, next.data());
  for_each_edge([&](std::size_t row, std::size_t target) {
    reverse.sources[next[target]++] = static_cast<std::uint32_t>(row);
  });
  return reverse;
}

void prune_block(const Context& context, MatrixView<const std::uint8_t> codes, const EdgeBlock& block,
                 ProgressMeter* progress) {
  PruneEdgesArgs args = {.codes = codes,
                         .lists = block.lists,
                         .offsets = block.offsets,
                         .others = block.sources,
                         .keep_short_lists = !block.offsets.empty(),
                         .edges = block.edges,
                         .progress = progress};
  Buffer<std::uint32_t> rows;
  if (block.lists.rows() != codes.rows()) {
    rows = Buffer<std::uint32_t>(*context.state().budget, block.lists.rows());
    std::iota(rows.data(), rows.data() + rows.size(), static_cast<std::uint32_t>(block.first_row));
    args.rows = rows.span();
  }
  const auto stream = open_stream(context);
  dispatch(&Ops::prune_edges, "prune_edges", *stream, args);
}

Buffer<std::int32_t> build_edges(const Context& context, MemoryBudget& budget,
                                 MatrixView<const std::uint8_t> codes, MatrixView<const std::int32_t> lists,
                                 std::size_t degree) {
  const Context::State& caller = context.state();
  const std::size_t rows = codes.rows();
  ProgressMeter progress(caller.options.progress, caller.clock, "prune_edges", 2 * rows);
  Buffer<std::int32_t> forward(*caller.budget, rows * degree);
  const MatrixView<std::int32_t> once(forward.data(), rows, degree);
  prune_block(context, codes, {.lists = lists, .edges = once}, &progress);
  const ReverseEdges reverse = reverse_edges(context, once);
  Buffer<std::int32_t> edges(budget, rows * degree);
  use_huge_pages(edges.data(), edges.size() * sizeof(std::int32_t));
  prune_block(context, codes,
              {.lists = once,
               .offsets = reverse.offsets.span(),
               .sources = reverse.sources.span(),
               .edges = {edges.data(), rows, degree}},
              &progress);
  progress.finish();
  return edges;
}

}  // namespace nearwise::graph_index
