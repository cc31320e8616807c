// Reachability of all rows in a search graph. Serial and in ascending order of rows: the same edges for any
// number of threads.
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <map>
#include <utility>
#include <vector>

#include "backend/context_state.h"
#include "backend/stages.h"
#include "graph/use/disjoint_sets.h"
#include "graph_index/edges/build_edges.h"
#include "graph_index/edges/code_distance.h"
#include "graph_index/edges/edge_changes.h"
#include "graph_index/edges/reached_rows.h"
#include "graph_index/edges/row_scan.h"
#include "nearwise/exact.h"

namespace nearwise::graph_index {
namespace {

// Components that each one gets edges to, by the distance of their means.
constexpr std::size_t neighbor_components = 4;
// Rounds of bridging: each merges a component with its nearest ones.
constexpr std::size_t max_bridge_rounds = 12;
// Pairs of rows compared by a round, at most.
constexpr double max_bridge_pairs = 1 << 26;
constexpr std::size_t max_sampled_rows = 256;  // of a component
constexpr std::size_t max_repair_rounds = 8;
// Components and their members, and the rows to follow.
constexpr std::size_t working_bytes_per_row = 13;

// Members of the weakly connected components, each ascending; components by their lowest row.
std::vector<std::vector<std::uint32_t>> components_of(const Context& context, const EdgeChanges& edges) {
  graph::DisjointSets sets(edges.rows());
  std::vector<std::int32_t> scratch;
  RowScan scan(context, edges.rows());
  for (std::uint32_t row = 0; row < edges.rows(); ++row) {
    scan.next();
    for (const std::int32_t target : edges.list(row, scratch)) {
      if (target == no_edge) break;
      sets.unite(row, static_cast<std::uint32_t>(target));
    }
  }
  std::vector<std::uint32_t> number(edges.rows());
  std::vector<std::vector<std::uint32_t>> components;
  for (std::uint32_t row = 0; row < edges.rows(); ++row) {
    const std::uint32_t lowest = sets.lowest(row);
    if (lowest == row) {
      number[row] = static_cast<std::uint32_t>(components.size());
      components.emplace_back();
    }
    components[number[lowest]].push_back(row);
  }
  return components;
}

// The mean code of each component.
Matrix<std::uint8_t> means_of(MatrixView<const std::uint8_t> codes,
                              const std::vector<std::vector<std::uint32_t>>& components) {
  Matrix<std::uint8_t> means(components.size(), codes.cols());
  std::vector<std::uint64_t> sums(codes.cols());
  for (std::size_t component = 0; component < components.size(); ++component) {
    std::ranges::fill(sums, 0);
    const std::vector<std::uint32_t>& members = components[component];
    for (const std::uint32_t row : members)
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += codes(row, i);
    for (std::size_t i = 0; i < sums.size(); ++i)
      means(component, i) = static_cast<std::uint8_t>((sums[i] + members.size() / 2) / members.size());
  }
  return means;
}

// The closest pair of a sample of rows of either side.
std::pair<std::uint32_t, std::uint32_t> closest_pair(MatrixView<const std::uint8_t> codes,
                                                     const std::vector<std::uint32_t>& left,
                                                     const std::vector<std::uint32_t>& right,
                                                     std::size_t sampled) {
  const std::size_t left_count = std::min(left.size(), sampled);
  const std::size_t right_count = std::min(right.size(), sampled);
  std::pair<std::uint32_t, std::uint32_t> closest;
  std::uint64_t smallest = UINT64_MAX;
  for (std::size_t i = 0; i < left_count; ++i)
    for (std::size_t j = 0; j < right_count; ++j) {
      const std::uint32_t a = left[i * left.size() / left_count];
      const std::uint32_t b = right[j * right.size() / right_count];
      const std::uint64_t distance = code_distance(codes.row(a), codes.row(b));
      if (distance < smallest) {
        smallest = distance;
        closest = {a, b};
      }
    }
  return closest;
}

// Edges between every component and its nearest ones, both ways.
void bridge(const Context& context, MatrixView<const std::uint8_t> codes, std::size_t code_dim,
            const std::vector<std::vector<std::uint32_t>>& components, EdgeChanges& edges) {
  const Matrix<std::uint8_t> means = means_of(codes, components);
  const std::size_t neighbors = std::min(neighbor_components, components.size() - 1);
  const Neighbors nearest = exact_knn_graph(
      context.without_progress(),
      RowsView(means.data(), ElementType::u8, components.size(), code_dim, codes.cols()), neighbors);
  const auto pairs = static_cast<double>(components.size() * neighbors);
  const auto sampled = static_cast<std::size_t>(
      std::clamp(std::sqrt(max_bridge_pairs / pairs), 1.0, static_cast<double>(max_sampled_rows)));
  ProgressMeter progress(context.state().options.progress, context.state().clock, "connect_rows",
                         components.size());
  for (std::size_t component = 0; component < components.size(); ++component) {
    context.state().cancel.check();
    for (const Id other : nearest.ids.row(component)) {
      const auto [a, b] =
          closest_pair(codes, components[component], components[static_cast<std::size_t>(other)], sampled);
      edges.add(a, b);
      edges.add(b, a);
    }
    progress.add(1);
  }
}

struct HashedRow {
  std::uint64_t hash;
  std::uint32_t row;
  friend auto operator<=>(const HashedRow&, const HashedRow&) = default;
};

// Rows with the same code cover each other, so that pruning keeps hardly any edge among them.
void link_equal_rows(const Context& context, MatrixView<const std::uint8_t> codes, EdgeChanges& edges) {
  Buffer<HashedRow> rows(*context.state().budget, codes.rows());
  RowScan scan(context, codes.rows());
  for (std::uint32_t row = 0; row < codes.rows(); ++row) {
    scan.next();
    rows[row] = {XXH3_64bits(codes.row(row).data(), codes.cols()), row};
  }
  std::sort(rows.data(), rows.data() + rows.size());
  for (std::size_t first = 0; first < rows.size();) {
    std::size_t end = first + 1;
    while (end < rows.size() && rows[end].hash == rows[first].hash) ++end;
    // A ring, in the order of rows. Equal hashes of different codes do no harm.
    for (std::size_t i = first; end - first > 1 && i < end; ++i)
      edges.add(rows[i].row, rows[i + 1 < end ? i + 1 : first].row);
    first = end;
  }
}

// Rows that are not marked: where one has an edge in the opposite direction (before_of) to a row that is,
// link(marked, row) adds the missing edge. Returns whether there were none.
template <typename NextOf, typename BeforeOf, typename Link>
bool repair(const Context& context, std::size_t rows, RowMarks& marks, const NextOf& next_of,
            const BeforeOf& before_of, const Link& link) {
  std::vector<std::uint32_t> queue;
  // The last row that was linked to each one: where a list takes no more edges, rows form a chain.
  std::map<std::uint32_t, std::uint32_t> last;
  bool was_complete = true;
  bool is_changed = true;
  while (is_changed) {
    is_changed = false;
    RowScan scan(context, rows);
    for (std::uint32_t row = 0; row < rows; ++row) {
      scan.next();
      if (marks.has(row)) continue;
      was_complete = false;
      for (const auto other : before_of(row)) {
        if (other == static_cast<decltype(other)>(no_edge)) break;
        const auto from = static_cast<std::uint32_t>(other);
        if (!marks.has(from)) continue;
        const auto end_of_chain = last.find(from);
        if (!link(from, row) && (end_of_chain == last.end() || !link(end_of_chain->second, row))) continue;
        last[from] = row;
        is_changed = true;
        // What this row leads to needs no edges of its own.
        marks.set(row);
        queue = {row};
        mark_following(context, next_of, queue, marks);
        break;
      }
    }
  }
  return was_complete;
}

}  // namespace

EdgeChanges connect_rows(const Context& context, MatrixView<const std::uint8_t> codes, std::size_t code_dim,
                         EdgeLists lists) {
  MemoryBudget& budget = *context.state().budget;
  EdgeChanges edges(budget, std::move(lists));
  // Steps take about as long as each other; as many rounds follow as usual.
  Stages stages(context, "connect_rows");
  link_equal_rows(stages.next(1, 5), codes, edges);
  const Reservation working(budget, edges.rows() * working_bytes_per_row);
  for (std::size_t round = 0; round < max_bridge_rounds; ++round) {
    const auto components = components_of(stages.next(1, 4), edges);
    if (components.size() == 1) break;
    bridge(stages.next(1, 4), codes, code_dim, components, edges);
  }
  // Edges that take the place of others may cut off rows again.
  for (std::size_t round = 0; round < max_repair_rounds; ++round) {
    RowMarks reached = reached_rows(stages.next(1, 4), edges);
    ReachingRows reaching = reaching_rows(stages.next(1, 3), edges);
    std::vector<std::int32_t> scratch;
    const auto targets_of = [&](std::uint32_t row) { return edges.list(row, scratch); };
    const auto sources_of = [&](std::uint32_t row) { return reaching.sources->of(row); };
    // Every row can be reached from row 0, and row 0 from every row.
    const bool is_reached =
        repair(stages.next(1, 2), edges.rows(), reached, targets_of, targets_of,
               [&](std::uint32_t marked, std::uint32_t row) { return edges.add(marked, row); });
    const bool reaches =
        repair(stages.next(1, 1), edges.rows(), reaching.marks, sources_of, sources_of,
               [&](std::uint32_t marked, std::uint32_t row) { return edges.add(row, marked); });
    if (is_reached && reaches) break;
  }
  return edges;
}

void connect_rows(const Context& context, MatrixView<const std::uint8_t> codes, std::size_t code_dim,
                  MatrixView<std::int32_t> edges) {
  connect_rows(context, codes, code_dim, EdgeLists(edges))
      .for_each(
          [&](std::uint32_t row, std::span<const std::int32_t> added) { put_edges(edges.row(row), added); });
}

std::uint64_t connecting_bytes(std::size_t rows) {
  // Of bits, and of added edges while their memory grows: to every row with the code of another, one.
  constexpr std::uint64_t others = 1 + 12;
  return rows * (sizeof(std::uint32_t) + std::max(sizeof(HashedRow), working_bytes_per_row) + others);
}

}  // namespace nearwise::graph_index
