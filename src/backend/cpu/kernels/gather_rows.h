// Rows of 4-byte units, anywhere in memory, put side by side: a panel that a scan reads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/kernels.h"

namespace nearwise::cpu {

struct GatherRowsArgs {
  const std::uint32_t* rows = nullptr;     // [any, units]
  const std::uint32_t* numbers = nullptr;  // [count] of the rows wanted
  std::size_t count = 0;
  std::size_t units = 0;
  std::size_t width = 0;         // rows of the panel; those beyond `count` are zero
  std::uint32_t* out = nullptr;  // [units, width]
};

struct GatherRowsKernels {
  void (*gather)(const GatherRowsArgs&) noexcept;
};
const GatherRowsKernels& gather_rows_kernels(InstructionSet set);

}  // namespace nearwise::cpu
