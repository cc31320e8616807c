#include "ops/finite_rows.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "backend/context_state.h"
#include "core/checked.h"
#include "core/convert.h"

namespace nearwise {
namespace {

constexpr std::size_t task_rows = 4096;

bool is_finite(const RowsView& rows, std::size_t row) {
  return visit_element_type(rows.type(), [&](auto tag) {
    float poison = 0;  // x * 0 is NaN for a NaN or infinite x, and stays NaN
    for (std::size_t i = 0; i < rows.dim(); ++i) poison += element<decltype(tag)>(rows.row(row), i) * 0;
    return poison == 0;
  });
}

float largest_magnitude(const RowsView& rows, std::size_t row) {
  return visit_element_type(rows.type(), [&](auto tag) {
    float largest = 0;
    for (std::size_t i = 0; i < rows.dim(); ++i)
      largest = std::max(largest, std::abs(static_cast<float>(element<decltype(tag)>(rows.row(row), i))));
    return largest;
  });
}

// The lowest row for which passes(row) is false; the number of rows if there is none.
template <typename Passes>
std::size_t lowest_failing(const Context& context, const RowsView& rows, const Passes& passes) {
  std::atomic<std::size_t> lowest{rows.rows()};
  context.state().threads->for_each(divide_up(rows.rows(), task_rows), [&](std::size_t task) {
    context.state().cancel.check();
    const std::size_t end = std::min(rows.rows(), (task + 1) * task_rows);
    for (std::size_t row = task * task_rows; row < end; ++row) {
      if (passes(row)) continue;
      std::size_t known = lowest.load();
      while (row < known && !lowest.compare_exchange_weak(known, row)) {
      }
      return;
    }
  });
  return lowest.load();
}

}  // namespace

std::size_t first_not_finite(const Context& context, const RowsView& rows) {
  if (rows.type() == ElementType::u8 || rows.type() == ElementType::i8) return rows.rows();
  return lowest_failing(context, rows, [&](std::size_t row) { return is_finite(rows, row); });
}

void check_finite(const char* operation, const Context& context, const RowsView& rows, std::size_t first_row,
                  const char* what) {
  if (rows.place().kind != DeviceKind::cpu) return;
  const std::size_t bad = first_not_finite(context, rows);
  require(bad == rows.rows(), "{}: every element must be finite, {} {} holds NaN or infinity", operation,
          what, first_row + bad);
}

void check_coded_range(const char* operation, const Context& context, const RowsView& rows, float limit) {
  check_finite(operation, context, rows);
  if ((rows.type() != ElementType::f32 && rows.type() != ElementType::bf16) ||
      rows.place().kind != DeviceKind::cpu)
    return;
  const std::size_t bad =
      lowest_failing(context, rows, [&](std::size_t row) { return largest_magnitude(rows, row) <= limit; });
  require(bad == rows.rows(), "{}: magnitudes must be at most {} for codes, row {} has {}", operation, limit,
          bad, bad == rows.rows() ? 0 : largest_magnitude(rows, bad));
}

}  // namespace nearwise
