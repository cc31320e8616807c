// Exact: keeps the packed base.
#include <algorithm>
#include <utility>

#include "core/checked.h"
#include "core/float_environment.h"
#include "ops/check_rows.h"
#include "ops/exact_knn.h"
#include "ops/memory_limit.h"
#include "ops/range_search.h"

namespace nearwise {
namespace {

// Threads share the base by blocks if there are few queries.
constexpr std::uint64_t min_block_bytes = 1 << 20;
constexpr std::uint64_t max_block_bytes = 128 << 20;
constexpr std::size_t blocks_per_thread = 4;
// A device scans a block at a time: as few as possible. Progress is reported after each.
constexpr std::uint64_t device_block_bytes = std::uint64_t{4} << 30;
// Besides packed rows: alignment of its buffers.
constexpr std::uint64_t block_overhead = 1024;

KnnCosts costs_of(const Context& context, const RowsView& base, Metric metric, const ScanTypes& types) {
  const auto stream = open_stream(context);
  return dispatch(&Ops::knn_costs, "knn_costs", *stream,
                  KnnCostsArgs{base.dim(), 1, metric, types.queries, types.base});
}

std::size_t block_rows(const KnnCosts& costs, std::size_t rows, int threads) {
  const std::uint64_t share =
      rows * costs.bytes_per_base_row / (blocks_per_thread * static_cast<std::uint64_t>(threads));
  const std::uint64_t bytes =
      costs.whole_device ? device_block_bytes : std::clamp(share, min_block_bytes, max_block_bytes);
  return round_up<std::uint64_t>(std::max<std::uint64_t>(1, bytes / costs.bytes_per_base_row),
                                 costs.base_granule);
}

}  // namespace

struct Exact::State {
  Context context;  // owns the budget of the blocks
  RowsView base;
  Metric metric;
  std::size_t first_row;  // in messages
  std::uintptr_t form;    // of the blocks
  PreparedBase prepared;

  // The blocks if they fit queries of this type in that context, else null.
  const PreparedBase* prepared_for(const Context& own, const RowsView& queries) const {
    if (base.rows() == 0 || own.place() != context.place()) return nullptr;
    const ScanTypes types = prepared.types_with(queries);
    if (types.queries != queries.type()) {
      const auto stream = open_stream(own);
      if (scan_type(*stream, queries, metric) != types.queries) return nullptr;
    }
    return costs_of(own, base, metric, types).form == form ? &prepared : nullptr;
  }
};

Exact Exact::prepare(const Context& context, RowsView base, const ExactOptions& options,
                     std::size_t first_row) {
  check_rows("Exact", context, base, base);
  const DefaultFloatEnvironment environment;
  context.state().cancel.check();
  const auto stream = open_stream(context);
  const ElementType type = scan_type(*stream, base, options.metric);
  const KnnCosts costs = costs_of(context, base, options.metric, {type, type});
  const std::size_t step = block_rows(costs, base.rows(), context.threads());
  const std::size_t blocks = base.rows() == 0 ? 0 : divide_up(base.rows(), step);
  // On the CPU every thread packs rows with memory of its own, a part of what its searches need.
  const std::uint64_t packing = costs.whole_device ? 0 : costs.fixed_bytes;
  check_memory("Exact", context,
               round_up<std::uint64_t>(base.rows(), costs.base_granule) * costs.bytes_per_base_row +
                   blocks * costs.base_granule * costs.bytes_per_base_row + base.dim() * sizeof(double) +
                   (blocks + 1) * block_overhead + packing);
  // Keeps the budget of the context only: progress and cancellation belong to this call.
  auto state = std::make_unique<State>(
      State{context.with_progress({}), base, options.metric, first_row, costs.form, {}});
  state->prepared.centre = centre_of(*stream, base, options.metric);
  state->prepared.type = type;
  ProgressMeter progress(context.state().options.progress, context.state().clock, "prepare", base.rows());
  for (std::size_t first = 0; first < base.rows(); first += step) {
    const std::size_t count = std::min(step, base.rows() - first);
    state->prepared.blocks.push_back({first, count,
                                      dispatch(&Ops::prepare_rows, "prepare_rows", *stream,
                                               PrepareArgs{.rows = base.slice(first, count),
                                                           .role = RowsRole::base,
                                                           .type = type,
                                                           .against = type,
                                                           .metric = options.metric,
                                                           .centre = state->prepared.centre,
                                                           .first_row = first_row + first,
                                                           .coarse = true})});
    progress.add(count);
  }
  progress.finish();
  return Exact(std::move(state));
}

Exact::Exact(std::unique_ptr<State> state) : state_(std::move(state)) {}
Exact::Exact(Exact&&) noexcept = default;
Exact& Exact::operator=(Exact&&) noexcept = default;
Exact::~Exact() = default;

Exact Exact::to(const Context& context) const {
  return prepare(context, state_->base, {.metric = state_->metric}, state_->first_row);
}

RowsView Exact::base() const { return state_->base; }
std::size_t Exact::size() const { return state_->base.rows(); }
Metric Exact::metric() const { return state_->metric; }
Place Exact::place() const { return state_->context.place(); }

Neighbors Exact::search(const Context& context, RowsView queries, std::size_t k,
                        const ExactSearchOptions& options) const {
  // Checked before any access: this context may not reach their device.
  check_rows("knn", context, queries, state_->base);
  return search_knn(context, queries, state_->base, k,
                    {.metric = state_->metric, .short_rows = options.short_rows, .filter = options.filter},
                    state_->prepared_for(context, queries));
}

RangeNeighbors Exact::range_search(const Context& context, RowsView queries, float radius,
                                   const ExactRangeOptions& options) const {
  check_rows("range_search", context, queries, state_->base);
  return search_range(context, queries, state_->base, radius,
                      {.metric = state_->metric, .filter = options.filter},
                      state_->prepared_for(context, queries));
}

}  // namespace nearwise
