#include "ops/second_look.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "backend/context_state.h"
#include "core/convert.h"
#include "core/distance.h"
#include "core/float_environment.h"

namespace nearwise {
namespace {

using Lanes = std::array<double, distance_lanes>;

// Sums as core/distance.h has them.
template <typename Term>
double sum_over(std::size_t dim, const Term& term) {
  Lanes lanes{};
  for (std::size_t i = 0; i < dim; ++i) lanes[i % distance_lanes] += term(i);
  return sum_of_lanes(lanes.data());
}

double squares_of(const std::vector<double>& row) {
  return sum_over(row.size(), [&](std::size_t i) { return row[i] * row[i]; });
}

float distance_between(Metric metric, const std::vector<double>& query, double query_norm,
                       const std::vector<double>& row) {
  if (is_euclidean(metric))
    return reported(metric,
                    sum_over(row.size(),
                             [&](std::size_t i) {
                               const double difference = query[i] - row[i];
                               return difference * difference;
                             }),
                    0, 0);
  const double products = sum_over(row.size(), [&](std::size_t i) { return query[i] * row[i]; });
  return reported(metric, products, query_norm, metric == Metric::cosine ? squares_of(row) : 0);
}

}  // namespace

void look_again(const Context& context, const RowsView& queries, const RowsView& rows, Metric metric,
                MatrixView<const Id> candidates, Neighbors& found) {
  const DefaultFloatEnvironment environment;
  const std::size_t k = found.ids.cols();
  context.state().threads->for_each(queries.rows(), [&](std::size_t query_number) {
    context.state().cancel.check();
    std::vector<double> query(queries.dim());
    std::vector<double> row(queries.dim());
    row_to_double(queries, query_number, query.data());
    const double query_norm = metric == Metric::cosine ? squares_of(query) : 0;
    std::vector<std::pair<float, Id>> best;
    for (const Id id : candidates.row(query_number)) {
      if (id == no_id) continue;
      row_to_double(rows, static_cast<std::size_t>(id), row.data());
      const float key = sort_key(metric, distance_between(metric, query, query_norm, row));
      // Rows are not checked for NaN here: such a row comes last, where an order of keys is possible.
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

}  // namespace nearwise
