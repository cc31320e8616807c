#include "graph_index/edges/reached_rows.h"

#include <algorithm>
#include <bit>

#include "backend/context_state.h"
#include "graph_index/edges/row_scan.h"

namespace nearwise::graph_index {
namespace {

// A scan of all rows that finds fewer than one in as many is the last: data of one dimension is a chain,
// which scans would follow by a few links each.
constexpr std::size_t slow_scan = 64;

// visit(row, target) for all edges to rows that are not marked.
template <typename Visit>
void for_each_edge_to_others(const Context& context, const EdgeChanges& edges, const RowMarks& marks,
                             const Visit& visit) {
  std::vector<std::int32_t> scratch;
  RowScan scan(context, edges.rows());
  for (std::uint32_t row = 0; row < edges.rows(); ++row) {
    scan.next();
    for (const std::int32_t target : edges.list(row, scratch)) {
      if (target == no_edge) break;
      if (!marks.has(static_cast<std::size_t>(target))) visit(row, static_cast<std::uint32_t>(target));
    }
  }
}

std::size_t count_others(const RowMarks& marks, std::size_t rows) {
  std::size_t marked = 0;
  for (const std::uint64_t word : marks.words()) marked += static_cast<std::size_t>(std::popcount(word));
  return rows - marked;
}

bool leads_to_marked(std::span<const std::int32_t> list, const RowMarks& marks) {
  for (const std::int32_t target : list) {
    if (target == no_edge) return false;
    if (marks.has(static_cast<std::size_t>(target))) return true;
  }
  return false;
}

// Marks rows with an edge to a marked one, in the order of rows. Returns their number.
std::size_t mark_sources(const Context& context, const EdgeChanges& edges, RowMarks& marks) {
  std::vector<std::int32_t> scratch;
  std::size_t marked = 0;
  RowScan scan(context, edges.rows());
  for (std::uint32_t row = 0; row < edges.rows(); ++row) {
    scan.next();
    if (marks.has(row) || !leads_to_marked(edges.list(row, scratch), marks)) continue;
    marks.set(row);
    ++marked;
  }
  return marked;
}

}  // namespace

RowMarks::RowMarks(MemoryBudget& budget, std::size_t rows) : words_(budget, rows / 64 + 1) {
  std::ranges::fill(words_.span(), std::uint64_t{0});
}

std::uint64_t SourcesOfSome::bytes(const Context& context, const EdgeChanges& edges, const RowMarks& marks) {
  std::uint64_t count = 0;
  for_each_edge_to_others(context, edges, marks, [&](std::uint32_t, std::uint32_t) { ++count; });
  return marks.words().size() * (sizeof(std::uint64_t) + sizeof(std::uint32_t)) +
         2 * (count_others(marks, edges.rows()) + 1) * sizeof(std::uint64_t) + count * sizeof(std::uint32_t);
}

SourcesOfSome::SourcesOfSome(const Context& context, const EdgeChanges& edges, const RowMarks& marks)
    : left_out_(*context.state().budget, edges.rows()),
      before_(*context.state().budget, marks.words().size()) {
  MemoryBudget& budget = *context.state().budget;
  std::uint32_t others = 0;
  for (std::size_t word = 0; word < before_.size(); ++word) {
    before_[word] = others;
    others += 64 - static_cast<std::uint32_t>(std::popcount(marks.words()[word]));
  }
  for (std::size_t row = 0; row < edges.rows(); ++row)
    if (marks.has(row)) left_out_.set(row);
  offsets_ = Buffer<std::uint64_t>(budget, count_others(marks, edges.rows()) + 1);
  std::ranges::fill(offsets_.span(), std::uint64_t{0});
  for_each_edge_to_others(context, edges, left_out_,
                          [&](std::uint32_t, std::uint32_t target) { ++offsets_[place_of(target) + 1]; });
  for (std::size_t place = 0; place + 1 < offsets_.size(); ++place) offsets_[place + 1] += offsets_[place];
  sources_ = Buffer<std::uint32_t>(budget, offsets_[offsets_.size() - 1]);
  Buffer<std::uint64_t> next(budget, offsets_.size());
  std::ranges::copy(offsets_.span(), next.data());
  for_each_edge_to_others(context, edges, left_out_, [&](std::uint32_t row, std::uint32_t target) {
    sources_[next[place_of(target)]++] = row;
  });
}

std::size_t SourcesOfSome::place_of(std::uint32_t row) const {
  const std::uint64_t lower = (std::uint64_t{1} << row % 64) - 1;
  return before_[row / 64] + static_cast<std::size_t>(std::popcount(~left_out_.words()[row / 64] & lower));
}

RowMarks reached_rows(const Context& context, const EdgeChanges& edges) {
  MemoryBudget& budget = *context.state().budget;
  RowMarks marks(budget, edges.rows());
  RowMarks open(budget, edges.rows());  // marked, and not expanded
  std::vector<std::int32_t> scratch;
  RowScan scan(context, edges.rows());
  marks.set(0);
  open.set(0);
  for (std::size_t expanded = edges.rows(); expanded * slow_scan >= edges.rows();) {
    expanded = 0;
    for (std::size_t word = 0; word < open.words().size(); ++word)
      while (open.words()[word] != 0) {
        const std::size_t row = word * 64 + static_cast<std::size_t>(std::countr_zero(open.words()[word]));
        open.clear(row);
        ++expanded;
        scan.next();
        for (const std::int32_t target : edges.list(static_cast<std::uint32_t>(row), scratch)) {
          if (target == no_edge) break;
          if (marks.has(static_cast<std::size_t>(target))) continue;
          marks.set(static_cast<std::size_t>(target));
          open.set(static_cast<std::size_t>(target));
        }
      }
    if (expanded == 0) return marks;
  }
  std::vector<std::uint32_t> queue;
  for (std::uint32_t row = 0; row < edges.rows(); ++row)
    if (open.has(row)) queue.push_back(row);
  mark_following(
      context, [&](std::uint32_t row) { return edges.list(row, scratch); }, queue, marks);
  return marks;
}

ReachingRows reaching_rows(const Context& context, const EdgeChanges& edges) {
  MemoryBudget& budget = *context.state().budget;
  RowMarks marks(budget, edges.rows());
  marks.set(0);
  for (std::size_t marked = edges.rows(); marked * slow_scan >= edges.rows();) {
    marked = mark_sources(context, edges, marks);
    if (marked == 0) break;
    // Where the sources of the others have no room, scans go on.
    if (marked * slow_scan < edges.rows() &&
        SourcesOfSome::bytes(context, edges, marks) > budget.available() / 2)
      marked = edges.rows();
  }
  if (count_others(marks, edges.rows()) == 0) return {std::move(marks), {}};
  SourcesOfSome sources(context, edges, marks);
  std::vector<std::int32_t> scratch;
  std::vector<std::uint32_t> queue;
  RowScan scan(context, edges.rows());
  for (std::uint32_t row = 0; row < edges.rows(); ++row) {
    scan.next();
    if (marks.has(row) || !leads_to_marked(edges.list(row, scratch), marks)) continue;
    marks.set(row);
    queue.push_back(row);
    // The sources of other rows are marked.
    mark_following(
        context, [&](std::uint32_t of) { return sources.of(of); }, queue, marks);
  }
  return {std::move(marks), std::move(sources)};
}

}  // namespace nearwise::graph_index
