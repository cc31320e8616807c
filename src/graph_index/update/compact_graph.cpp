#include "graph_index/update/compact_graph.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "backend/context_state.h"
#include "backend/dispatch.h"
#include "graph_index/edges/build_edges.h"

namespace nearwise::graph_index {
namespace {

Buffer<std::uint32_t> live_rows_by_id(const Context& context, const GraphRows& rows, const RowBits& live) {
  std::size_t count = 0;
  for (std::size_t row = 0; row < rows.count(); ++row) count += live.contains(row) ? 1 : 0;
  Buffer<std::uint32_t> order(*context.state().budget, count);
  std::size_t next = 0;
  for (std::uint32_t row = 0; row < rows.count(); ++row)
    if (live.contains(row)) order[next++] = row;
  std::ranges::sort(order.span(), {}, [&](std::uint32_t row) { return rows.id_of(row); });
  return order;
}

// Edges of the given rows to live ones, by the numbers that rows have now; [given, degree] out.
void edges_without_removed(const Context& context, const GraphRows& rows, const RowBits& live,
                           std::span<const std::uint32_t> given, std::int32_t* edges) {
  MemoryBudget& budget = *context.state().budget;
  const std::size_t degree = rows.edges.cols();
  const auto is_removed = [&](std::int32_t row) { return !live.contains(static_cast<std::size_t>(row)); };
  Buffer<std::uint64_t> offsets(budget, given.size() + 1);
  offsets[0] = 0;
  const auto for_each_other = [&](std::size_t i, const auto& visit) {
    for (const std::int32_t target : rows.edges.row(given[i])) {
      if (target == no_edge) break;
      if (!is_removed(target)) continue;
      for (const std::int32_t other : rows.edges.row(static_cast<std::size_t>(target))) {
        if (other == no_edge) break;
        if (!is_removed(other)) visit(static_cast<std::uint32_t>(other));
      }
    }
  };
  for (std::size_t i = 0; i < given.size(); ++i) {
    std::size_t count = 0;
    for_each_other(i, [&](std::uint32_t) { ++count; });
    offsets[i + 1] = offsets[i] + count;
  }
  Buffer<std::uint32_t> others(budget, offsets[given.size()]);
  for (std::size_t i = 0; i < given.size(); ++i) {
    std::size_t next = offsets[i];
    for_each_other(i, [&](std::uint32_t other) { others[next++] = other; });
    std::int32_t* const list = edges + i * degree;
    std::int32_t* end = list;
    for (const std::int32_t target : rows.edges.row(given[i])) {
      if (target == no_edge) break;
      if (!is_removed(target)) *end++ = target;
    }
    std::fill(end, list + degree, no_edge);
  }
  const auto stream = open_stream(context);
  dispatch(&Ops::prune_edges, "prune_edges", *stream,
           PruneEdgesArgs{.codes = rows.codes,
                          .rows = given,
                          .lists = {edges, given.size(), degree},
                          .offsets = offsets.span(),
                          .others = others.span(),
                          .keep_short_lists = true,
                          .edges = {edges, given.size(), degree}});
}

}  // namespace

SearchedGraph compacted(const Context& context, const std::shared_ptr<MemoryBudget>& budget,
                        const SearchedGraph& graph, const RowBits& live) {
  const GraphRows& before = graph.rows;
  const std::size_t degree = before.edges.cols();
  const Buffer<std::uint32_t> order = live_rows_by_id(context, before, live);
  Buffer<std::int32_t> numbers(*context.state().budget, before.count());
  for (std::size_t row = 0; row < order.size(); ++row) numbers[order[row]] = static_cast<std::int32_t>(row);

  SearchedGraph made;
  GraphRows& rows = made.rows;
  rows = GraphRows::with_capacity(*budget, before.codec, before.vectors.type(), degree, order.size());
  rows.copy_behind(context, before, order.span());
  for (std::size_t first = 0; first < order.size(); first += compacted_at_once) {
    context.state().cancel.check();
    const std::size_t count = std::min(compacted_at_once, order.size() - first);
    std::int32_t* const edges = rows.own_edges.data() + first * degree;
    edges_without_removed(context, before, live, order.span().subspan(first, count), edges);
    for (std::size_t i = 0; i < count * degree; ++i)
      if (edges[i] != no_edge) edges[i] = numbers[static_cast<std::size_t>(edges[i])];
  }
  rows.set_count(order.size());
  if (order.size() != 0) {
    const std::size_t code_dim = rows.codec->code_dim();
    made.entries = EntryTree::train(context, rows.codes, code_dim);
    connect_rows(context, rows.codes, code_dim, rows.writable_edges());
  }
  made.prepare(context, budget);
  return made;
}

}  // namespace nearwise::graph_index
