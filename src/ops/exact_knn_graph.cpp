// exact_knn_graph: by a self-join if possible.
#include "core/checked.h"
#include "core/float_environment.h"
#include "ops/check_rows.h"
#include "ops/exact_knn.h"

namespace nearwise {
namespace {

// Whether the backend has a self-join for these rows that fits in memory, including the result.
bool can_join(Stream& stream, const RowsView& base, std::size_t k, Metric metric, ElementType type,
              std::uint64_t results) {
  if (base.rows() > max_shard_rows || stream.context.backend.ops.self_join == nullptr) return false;
  const SelfJoinCosts costs = dispatch(&Ops::self_join_costs, "self_join_costs", stream,
                                       KnnCostsArgs{base.dim(), k, metric, type, type});
  const std::uint64_t needed = results + costs.fixed_bytes +
                               round_up<std::uint64_t>(base.rows(), costs.row_granule) * costs.bytes_per_row;
  return costs.offered && needed <= stream.context.budget->available();
}

}  // namespace

Neighbors exact_knn_graph(const Context& context, RowsView base, std::size_t k, const KnnOptions& options) {
  KnnOptions other_rows = options;
  other_rows.exclude_self = true;
  check_rows("exact_knn_graph", context, base, base);
  check_k("exact_knn_graph", k, base.rows(), other_rows);
  const DefaultFloatEnvironment environment;  // bounds are computed on this thread too
  Context::State& state = context.state();
  state.cancel.check();
  const std::uint64_t bytes =
      checked_multiply(checked_multiply(base.rows(), k, "exact_knn_graph: rows * k"),
                       sizeof(Id) + sizeof(float), "exact_knn_graph: the result's bytes");
  const auto stream = open_stream(context);
  const ElementType type = scan_type(*stream, base, options.metric);
  if (base.rows() > 0 && options.filter.is_trivial() &&
      can_join(*stream, base, k, options.metric, type, bytes)) {
    const Reservation reservation(*state.budget, bytes);
    Neighbors result{Matrix<Id>(base.rows(), k), Matrix<float>(base.rows(), k)};
    ProgressMeter progress(state.options.progress, state.clock, "exact_knn_graph",
                           std::uint64_t{base.rows()} * (base.rows() - 1) / 2);
    const std::vector<float> centre = centre_of(*stream, base, options.metric);
    const bool joined = dispatch(&Ops::self_join, "self_join", *stream,
                                 SelfJoinArgs{.rows = base,
                                              .metric = options.metric,
                                              .k = k,
                                              .type = type,
                                              .centre = centre,
                                              .ids = result.ids.view(),
                                              .distances = result.distances.view(),
                                              .progress = &progress});
    if (joined) {
      progress.finish();
      return result;
    }
  }
  return search_knn(context, base, base, k, other_rows, nullptr);
}

}  // namespace nearwise
