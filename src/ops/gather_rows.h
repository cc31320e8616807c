// Copies of chosen rows in consecutive memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "core/memory.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise {

inline std::size_t row_bytes_of(const RowsView& rows) { return rows.dim() * element_size(rows.type()); }

struct PlacedRow {
  std::size_t row = 0;    // in the source
  std::size_t place = 0;  // in the output
};

// Copies `count` rows to out [count, row_bytes_of(rows)] on all threads. placed(i) should name ascending rows
// for ascending i, so that a mapped file is read from front to back.
void gather_rows(const Context& context, const RowsView& rows, std::size_t count,
                 const std::function<PlacedRow(std::size_t)>& placed, std::byte* out);

// Row numbers[i] to place i.
void gather_rows(const Context& context, const RowsView& rows, std::span<const std::uint32_t> numbers,
                 std::byte* out);

// Owns its copies, on the context's memory budget.
class GatheredRows {
 public:
  GatheredRows() = default;
  GatheredRows(const Context& context, const RowsView& rows, std::size_t count,
               const std::function<PlacedRow(std::size_t)>& placed);
  GatheredRows(const Context& context, const RowsView& rows, std::span<const std::uint32_t> numbers);

  const RowsView& view() const { return view_; }

 private:
  GatheredRows(const Context& context, const RowsView& rows, std::size_t count);

  Buffer<std::byte> copies_;
  RowsView view_;
};

}  // namespace nearwise
