// f32 vectors often hold integers from 0 to 255, as SIFT descriptors do: integer scans are twice as fast.
#include <algorithm>
#include <atomic>

#include "backend/cpu/operations.h"
#include "backend/cpu/stream.h"
#include "core/checked.h"

namespace nearwise::cpu {

ElementType narrowest_type(Stream& stream, const RowsView& rows) {
  CpuStream& cpu = cpu_stream(stream);
  if (rows.type() != ElementType::f32 || cpu.set.extension < Extension::integer_dots) return rows.type();
  constexpr std::size_t task_rows = 4096;
  std::atomic<bool> all{true};
  cpu.threads().for_each(divide_up(rows.rows(), task_rows), [&](std::size_t task) {
    cpu.context.cancel.check();
    const std::size_t end = std::min(rows.rows(), (task + 1) * task_rows);
    for (std::size_t row = task * task_rows; row < end && all.load(std::memory_order_relaxed); ++row)
      if (!cpu.pack_rows.holds_bytes(reinterpret_cast<const float*>(rows.row(row)), rows.dim()))
        all.store(false, std::memory_order_relaxed);
  });
  return all.load() ? ElementType::u8 : rows.type();
}

}  // namespace nearwise::cpu
