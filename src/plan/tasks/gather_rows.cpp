#include "plan/tasks/gather_rows.h"

#include <algorithm>
#include <cstring>

#include "backend/context_state.h"
#include "core/checked.h"

namespace nearwise::plan {
namespace {

// Rows that a thread gathers at a time.
constexpr std::size_t task_rows = 4096;

}  // namespace

Buffer<std::byte> gather_rows(const Context& context, const GraphWork& work, std::size_t count,
                              const std::function<PlacedRow(std::size_t)>& placed) {
  const VectorFile file = work.open();
  const RowsView rows = file.rows();
  const std::size_t row_bytes = work.shape.row_bytes();
  Buffer<std::byte> gathered(*context.state().budget, count * row_bytes);
  context.state().threads->for_each(divide_up(count, task_rows), [&](std::size_t task) {
    context.state().cancel.check();
    for (std::size_t i = task * task_rows; i < std::min(count, (task + 1) * task_rows); ++i) {
      const PlacedRow from = placed(i);
      std::memcpy(gathered.data() + from.place * row_bytes, rows.row(from.row), row_bytes);
    }
  });
  return gathered;
}

}  // namespace nearwise::plan
