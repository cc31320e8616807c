#include "ops/rerank.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "backend/context_state.h"
#include "core/convert.h"
#include "core/float_environment.h"
#include "core/plain_distance.h"

namespace nearwise {

void rerank(const Context& context, const RowsView& queries, Metric metric, MatrixView<const Id> candidates,
            const std::function<ReadVector()>& reader, Neighbors& found) {
  const DefaultFloatEnvironment environment;
  const std::size_t k = found.ids.cols();
  context.state().threads->for_each(queries.rows(), [&](std::size_t query_number) {
    context.state().cancel.check();
    const ReadVector read = reader();
    std::vector<double> query(queries.dim());
    std::vector<double> row(queries.dim());
    row_to_double(queries, query_number, query.data());
    const double query_norm = metric == Metric::cosine ? sum_of_squares(query) : 0;
    std::vector<std::pair<float, Id>> best;
    for (const Id id : candidates.row(query_number)) {
      if (id == no_id || !read(id, row.data())) continue;
      const float key = sort_key(metric, plain_distance(metric, query, query_norm, row));
      // Rows are not checked for NaN; such rows sort last.
      best.emplace_back(std::isnan(key) ? std::numeric_limits<float>::infinity() : key, id);
    }
    std::ranges::sort(best);
    for (std::size_t i = 0; i < k; ++i) {
      found.ids(query_number, i) = i < best.size() ? best[i].second : no_id;
      found.distances(query_number, i) =
          i < best.size() ? distance_of_key(metric, best[i].first) : padding_distance(metric);
    }
  });
}

void rerank(const Context& context, const RowsView& queries, const RowsView& rows, Metric metric,
            MatrixView<const Id> candidates, Neighbors& found) {
  rerank(
      context, queries, metric, candidates,
      [&] {
        return [&rows](Id id, double* out) {
          row_to_double(rows, static_cast<std::size_t>(id), out);
          return true;
        };
      },
      found);
}

}  // namespace nearwise
