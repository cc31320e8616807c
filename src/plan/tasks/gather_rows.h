// Rows of a file, put together in memory.
#pragma once

#include <cstddef>
#include <functional>

#include "core/memory.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {

// A row of the file, and the place that it gets.
struct PlacedRow {
  std::size_t row = 0;
  std::size_t place = 0;
};

// [count, row_bytes] on the budget. placed(i), i below count: in the order of the file, which is then read from front to back by
// every thread; where pages come from a disk, as many are waited for at a time.
Buffer<std::byte> gather_rows(const Context& context, const GraphWork& work, std::size_t count,
                              const std::function<PlacedRow(std::size_t)>& placed);

}  // namespace nearwise::plan
