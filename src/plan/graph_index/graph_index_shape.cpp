// Sizes that keep the tasks of a graph index within the memory limit, independent of the machine and its
// threads.
#include <algorithm>

#include "core/checked.h"
#include "core/memory.h"
#include "graph_index/edges/build_edges.h"
#include "graph_index/graph_build.h"
#include "graph_index/graph_index_state.h"
#include "graph_index/memory_needs.h"
#include "graph_index/train_codec.h"
#include "plan/graph_index/graph_index_work.h"
#include "plan/tasks/graph_tasks.h"

namespace nearwise::plan {
namespace {

// Pruners of threads, pieces of files that are written, and small allocations.
constexpr std::uint64_t working_bytes = std::uint64_t{8} << 20;
// Smaller blocks take less time than a cluster needs to start a task; larger ones would lose too much work in
// an interruption. Every task reads the codes of all blocks.
constexpr std::size_t min_block_rows = 1024;
constexpr std::size_t small_block_rows = std::size_t{1} << 16;
constexpr std::size_t max_block_rows = std::size_t{1} << 22;
constexpr std::size_t default_blocks = 8;

// Of a row that is pruned: its neighbours, edges, row number, and reverse edges with their offset, of which a
// batch has at most twice as many as it has edges (edge_tasks.cpp).
std::uint64_t bytes_of_row(const GraphWork& graph, std::size_t degree) {
  return graph.options.degree * sizeof(std::int32_t) + degree * 3 * sizeof(std::int32_t) +
         sizeof(std::uint32_t) + 2 * sizeof(std::uint64_t);
}

}  // namespace

GraphIndexWork graph_index_work(const Context& context, const PlanFiles& files, const RowsView& rows,
                                const GraphIndexPlanOptions& options) {
  GraphIndexWork work;
  work.files = files;
  work.options = options;
  work.rows = rows.rows();
  work.dim = rows.dim();
  work.type = rows.type();
  work.nibble_rows = graph_index::min_nibble_rows;
  const ScalarCodec codec = work.shape_of_codes();
  const RowsView codes(nullptr, ElementType::u8, work.rows, codec.code_dim(), codec.row_bytes());
  work.graph.files = files;
  work.graph.options = {.degree = std::min(work.degree(), std::max<std::size_t>(2, work.rows) - 1),
                        .target_recall = options.index.graph_recall};
  work.graph.codes = {.file = work.file_of(codes_name), .dim = codec.code_dim(), .rows = work.rows};

  const std::uint64_t row = bytes_of_row(work.graph, work.degree());
  const std::uint64_t least =
      working_bytes +
      std::max({graph_index::codec_training_bytes(rows, options.index.metric), min_block_rows * row,
                graph_index::connecting_bytes(work.rows), graph_index::entry_tree_bytes(context, codes),
                graph_index::calibrating_bytes(context, rows, options.calibration)});
  work.least_limit = sufficient_limit(context, codes, work.graph.options, least);
  const std::uint64_t sufficient =
      sufficient_limit(context, codes, work.graph.options, std::max(least, context.memory_limit()));
  if (sufficient > context.memory_limit())
    refuse_limit("plan_graph_index", context.memory_limit(), sufficient);
  const std::uint64_t fitting = (context.memory_limit() - working_bytes) / row;
  const std::uint64_t most =
      std::clamp(divide_up(work.rows, default_blocks), small_block_rows, max_block_rows);
  work.block_rows = std::min({work.rows, most, std::max<std::uint64_t>(fitting, min_block_rows)});
  work.graph.shape = shape_of(context, codes, work.graph.options);
  return work;
}

}  // namespace nearwise::plan
