// select_k: argument checks and dispatch.
#include "nearwise/select_k.h"

#include <algorithm>
#include <limits>

#include "backend/dispatch.h"
#include "core/checked.h"
#include "core/lost_pages.h"
#include "core/memory.h"
#include "ops/check_place.h"

namespace nearwise {
namespace {

template <typename T>
void check_view(const Context& context, const MatrixView<T>& view, const char* what) {
  require(view.rows() <= 1 || view.stride() >= view.cols(),
          "select_k: rows of {} must not overlap, a row has {} elements and the next begins after {}", what,
          view.cols(), view.stride());
  check_place("select_k", context, view.place(), what);
}

template <typename T>
void check_ids(const Context& context, const MatrixView<const float>& values, const MatrixView<T>& ids) {
  require(ids.cols() == values.cols() && (ids.rows() == values.rows() || ids.rows() == 1),
          "select_k: ids must have the shape of the values, [{}, {}], or one row, got [{}, {}]",
          values.rows(), values.cols(), ids.rows(), ids.cols());
  check_view(context, ids, "ids");
}

// Padding after the last column.
void pad(Selection& selection, std::size_t first, Order order) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (std::size_t row = 0; row < selection.ids.rows(); ++row) {
    const auto ids = selection.ids.row(row).subspan(first);
    const auto values = selection.values.row(row).subspan(first);
    std::fill(ids.begin(), ids.end(), no_id);
    std::fill(values.begin(), values.end(), order == Order::smallest ? infinity : -infinity);
  }
}

void check_memory(const MemoryBudget& budget, std::uint64_t results, std::uint64_t least) {
  if (results > budget.available() || least > budget.available() - results)
    refuse_limit("select_k", budget.limit(), budget.limit() - budget.available() + results + least);
}

Selection select(const Context& context, const MatrixView<const float>& values, const ColumnIds& column_ids,
                 std::size_t k, const SelectOptions& options) {
  require(k >= 1, "select_k: k must be at least 1, got 0");
  require(
      k <= values.cols() || options.short_rows == ShortRows::pad,
      "select_k: k must be at most the number of columns, {}, got {} (short_rows = pad fills up the rows)",
      values.cols(), k);
  check_view(context, values, "values");
  check_mapped(RowsView(values));
  Context::State& state = context.state();
  state.cancel.check();
  const std::size_t found = std::min(k, values.cols());
  const std::size_t result_bytes =
      checked_multiply(checked_multiply(values.rows(), k, "select_k: rows * k"), sizeof(Id) + sizeof(float),
                       "select_k: the result's bytes");
  const auto stream = open_stream(context);
  const bool nothing_to_do = values.rows() == 0 || found == 0;
  const std::uint64_t least = nothing_to_do ? 0
                                            : dispatch(&Ops::select_k_bytes, "select_k_bytes", *stream,
                                                       SelectKShape{values.rows(), values.cols(), found});
  check_memory(*state.budget, result_bytes, least);

  const Reservation reservation(*state.budget, result_bytes);
  Selection selection{Matrix<Id>(values.rows(), k), Matrix<float>(values.rows(), k)};
  if (found < k) pad(selection, found, options.order);
  if (nothing_to_do) return selection;
  ProgressMeter progress(state.options.progress, state.clock, "select_k",
                         std::uint64_t{values.rows()} * values.cols());
  dispatch(&Ops::select_k, "select_k", *stream,
           SelectKArgs{.values = values,
                       .column_ids = column_ids,
                       .order = options.order,
                       .k = found,
                       .ids = selection.ids.view(),
                       .best = selection.values.view(),
                       .progress = &progress});
  progress.finish();
  return selection;
}

}  // namespace

Selection select_k(const Context& context, MatrixView<const float> values, std::size_t k,
                   const SelectOptions& options) {
  return select(context, values, {}, k, options);
}

Selection select_k(const Context& context, MatrixView<const float> values, MatrixView<const Id> ids,
                   std::size_t k, const SelectOptions& options) {
  check_ids(context, values, ids);
  return select(context, values, {.narrow = {}, .wide = ids}, k, options);
}

Selection select_k(const Context& context, MatrixView<const float> values,
                   MatrixView<const std::uint32_t> ids, std::size_t k, const SelectOptions& options) {
  check_ids(context, values, ids);
  return select(context, values, {.narrow = ids, .wide = {}}, k, options);
}

}  // namespace nearwise
