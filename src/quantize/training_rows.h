// The training sample of a quantizer or rotation: all rows, or a random subset.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/memory.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise::quantize {

class TrainingRows {
 public:
  // most: sample size; 0: all. Stratified: one row from each of `most` equal ranges. Evenly spaced rows would
  // miss classes of periodic data.
  TrainingRows(const Context& context, const RowsView& rows, std::size_t most);

  // Bytes on the budget.
  static std::uint64_t bytes(const RowsView& rows, std::size_t most);
  // The shape of the sample.
  static RowsView shape(const RowsView& rows, std::size_t most);

  const RowsView& view() const { return view_; }

 private:
  Buffer<std::byte> gathered_;  // empty if all rows are taken
  RowsView view_;
};

}  // namespace nearwise::quantize
