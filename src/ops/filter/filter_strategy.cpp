#include "ops/filter/filter_strategy.h"

#include "ops/knn_plan.h"

namespace nearwise {

FilterStrategy choose_filter_strategy(const FilteredSearchShape& shape) {
  if (shape.has_direct && shape.queries <= max_direct_queries) return FilterStrategy::direct;
  if (!shape.can_mask) return FilterStrategy::gather;
  const auto queries = static_cast<double>(shape.queries);
  const double gather =
      static_cast<double>(shape.allowed) * (gather_ns(shape.row_bytes) + queries * shape.pair_ns);
  const double mask = static_cast<double>(shape.rows) * queries * shape.pair_ns;
  return mask < gather ? FilterStrategy::mask : FilterStrategy::gather;
}

}  // namespace nearwise
