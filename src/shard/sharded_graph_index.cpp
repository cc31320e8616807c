// Graph indexes over several contexts.
#include <numeric>

#include "backend/context_state.h"
#include "nearwise/sharded.h"
#include "ops/filter/filtered_search.h"
#include "shard/merge_parts.h"
#include "shard/prepare.h"

namespace nearwise {

Neighbors shard::search_parts(const Context& context, const Members& parts, RowsView queries, std::size_t k,
                              const GraphSearchOptions& options, const Search<GraphSearchOptions>& search) {
  constexpr const char* operation = "GraphIndex.search";
  check_filter(operation, options.filter, queries.rows());
  // Wrong arguments are wrong for all parts alike.
  GraphSearchOptions without_queries = options;
  if (options.filter.queries()) without_queries.filter = options.filter.from_query(0, 0);
  static_cast<void>(search(0, context.without_progress(), queries.slice(0, 0), k, without_queries));
  return merge_parts(operation, context, parts, queries, k, options, search);
}

Sharded<GraphIndex> shard_graph_index(std::span<const Context> contexts, RowsView rows,
                                      const GraphIndexOptions& options,
                                      const std::optional<GraphCalibrationOptions>& calibration) {
  constexpr const char* operation = "GraphIndex";
  require(options.ids.empty() || options.ids.size() == rows.rows(),
          "{}: there must be an id for each row, got {} ids for {} rows", operation, options.ids.size(),
          rows.rows());
  require(contexts.size() <= rows.rows(), "{}: there must be a row for each context, got {} for {}",
          operation, rows.rows(), contexts.size());
  return Sharded<GraphIndex>(shard::prepare_at_once<GraphIndex>(
      operation, contexts, options.metric,
      [&](std::size_t part) { return shard::part_of(rows.rows(), part, contexts.size()); },
      [&](const Context& context, const shard::Rows& part) {
        const bool are_given = !options.ids.empty();
        Buffer<Id> numbers(*context.state().budget, are_given ? 0 : part.count);
        std::iota(numbers.data(), numbers.data() + numbers.size(), static_cast<Id>(part.first));
        GraphIndexOptions own = options;
        own.ids = are_given ? options.ids.subspan(part.first, part.count) : numbers.span();
        return GraphIndex::build(context, rows.slice(part.first, part.count), own, calibration);
      }));
}

}  // namespace nearwise
