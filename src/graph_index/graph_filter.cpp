#include "graph_index/graph_filter.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "ops/filter/filter_strategy.h"

namespace nearwise::graph_index {
namespace {

// Estimates of times on one thread, not fitted to measurements. A list of edges that is expanded: about half
// of its rows have not been seen.
double expansion_ns(const GraphFilterShape& shape) {
  return static_cast<double>(shape.degree) * (4 + 0.06 * static_cast<double>(shape.code_bytes));
}
// An allowed row, read where it is by a single query, or copied once and scanned by a batch.
double direct_ns(std::size_t row_bytes) { return 3 + 0.03 * static_cast<double>(row_bytes); }
double batch_ns(std::size_t row_bytes) { return 0.5 + 0.002 * static_cast<double>(row_bytes); }

}  // namespace

GraphFilterPlan plan_graph_filter(const GraphFilterShape& shape) {
  const double selectivity = static_cast<double>(shape.allowed) / static_cast<double>(shape.rows);
  GraphFilterPlan plan;
  plan.beam = static_cast<std::size_t>(
      std::min(std::ceil(static_cast<double>(shape.beam) / selectivity), static_cast<double>(shape.rows)));
  plan.graph_cost = static_cast<double>(plan.beam) * expansion_ns(shape);
  const double per_row =
      std::min(direct_ns(shape.row_bytes),
               gather_ns(shape.row_bytes) / static_cast<double>(std::max<std::size_t>(shape.queries, 1)) +
                   batch_ns(shape.row_bytes));
  plan.exact_cost = static_cast<double>(shape.allowed) * per_row;
  plan.exact = plan.exact_cost <= plan.graph_cost;
  return plan;
}

std::shared_ptr<const AllowedRows> allowed_rows(const SearchedGraph& graph, const Filter& filter) {
  if (!FilterInternals::is_shared(filter)) return graph.live;
  const std::size_t rows = graph.rows.count();
  auto allowed = FilterInternals::derive<AllowedRows>(filter, graph.filter_key, [&] {
    std::vector<std::uint64_t> words(bit_words(rows), 0);
    if (graph.rows.ids.empty()) {
      FilterInternals::write_bits(filter, rows, words.data());
    } else {
      for (std::size_t row = 0; row < rows; ++row)
        if (FilterInternals::allows_shared(filter, graph.rows.ids[row]))
          words[row / 64] |= std::uint64_t{1} << (row % 64);
    }
    if (graph.live)
      for (std::size_t i = 0; i < words.size(); ++i) words[i] &= graph.live->words[i];
    return allowed_of(std::move(words));
  });
  return allowed->count == rows ? nullptr : allowed;
}

Filter query_rows(const GraphIndexInternals::State& state, const Filter& filter, std::size_t queries) {
  using PerQuery = FilterInternals::PerQuery;
  const PerQuery kind = FilterInternals::per_query(filter);
  if (kind == PerQuery::none) return {};
  std::vector<std::size_t> offsets = {0};
  std::vector<Id> rows;
  const DeniedIds denied = FilterInternals::denied(filter);
  const auto add = [&](Id id) {
    if (const std::optional<std::size_t> row = state.find(id)) rows.push_back(static_cast<Id>(*row));
  };
  for (std::size_t query = 0; query < queries; ++query) {
    if (kind == PerQuery::allow) {
      for (const Id id : FilterInternals::allowed(filter, query)) add(id);
    } else {
      for (const Id id : denied.of(query)) add(id - denied.first_id);
    }
    offsets.push_back(rows.size());
  }
  return kind == PerQuery::allow ? Filter::allow_per_query(offsets, rows)
                                 : Filter::deny_per_query(offsets, rows);
}

}  // namespace nearwise::graph_index
