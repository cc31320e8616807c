// The rows that a quantizer or a rotation is trained on: all, or some of them, drawn by the seed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/memory.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise::quantize {

class TrainingRows {
 public:
  // most: 0 for all. A row is drawn from each of `most` equal parts of the rows: evenly spaced ones would see
  // one class of periodic data only.
  TrainingRows(const Context& context, const RowsView& rows, std::size_t most);

  // Bytes on the budget.
  static std::uint64_t bytes(const RowsView& rows, std::size_t most);
  // The shape of what it will hold.
  static RowsView shape(const RowsView& rows, std::size_t most);

  const RowsView& view() const { return view_; }

 private:
  Buffer<std::byte> gathered_;  // empty where all rows are taken
  RowsView view_;
};

}  // namespace nearwise::quantize
