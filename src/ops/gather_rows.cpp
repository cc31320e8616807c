#include "ops/gather_rows.h"

#include <algorithm>
#include <cstring>

#include "backend/context_state.h"
#include "core/checked.h"

namespace nearwise {
namespace {

constexpr std::size_t task_rows = 1024;  // bounds the latency of cancellation to about 1 ms

}  // namespace

void gather_rows(const Context& context, const RowsView& rows, std::size_t count,
                 const std::function<PlacedRow(std::size_t)>& placed, std::byte* out) {
  const std::size_t row_bytes = row_bytes_of(rows);
  context.state().threads->for_each(divide_up(count, task_rows), [&](std::size_t task) {
    context.state().cancel.check();
    for (std::size_t i = task * task_rows; i < std::min(count, (task + 1) * task_rows); ++i) {
      const PlacedRow from = placed(i);
      std::memcpy(out + from.place * row_bytes, rows.row(from.row), row_bytes);
    }
  });
}

void gather_rows(const Context& context, const RowsView& rows, std::span<const std::uint32_t> numbers,
                 std::byte* out) {
  const auto placed = [&](std::size_t i) { return PlacedRow{numbers[i], i}; };
  gather_rows(context, rows, numbers.size(), placed, out);
}

GatheredRows::GatheredRows(const Context& context, const RowsView& rows, std::size_t count)
    : copies_(*context.state().budget, checked_multiply(count, row_bytes_of(rows), "gathered rows")),
      view_(copies_.data(), rows.type(), count, rows.dim(), row_bytes_of(rows)) {}

GatheredRows::GatheredRows(const Context& context, const RowsView& rows, std::size_t count,
                           const std::function<PlacedRow(std::size_t)>& placed)
    : GatheredRows(context, rows, count) {
  gather_rows(context, rows, count, placed, copies_.data());
}

GatheredRows::GatheredRows(const Context& context, const RowsView& rows,
                           std::span<const std::uint32_t> numbers)
    : GatheredRows(context, rows, numbers.size()) {
  gather_rows(context, rows, numbers, copies_.data());
}

}  // namespace nearwise
