// Picks a kernel table by instruction set, per Context rather than per process as Highway's own dispatch does.
#pragma once

#include <cstddef>

#include "backend/cpu/kernels/instruction_set.h"
#include "hwy/highway.h"

namespace nearwise::cpu {
namespace {

// `table` is what HWY_EXPORT made in the including file. In an anonymous namespace because the layout of that table
// depends on the targets compiled into the including file.
template <typename Function, std::size_t entries>
Function select(Function const (&table)[entries], InstructionSet set) {
  if constexpr (entries == 1) {
    return table[0];  // a single compiled target: HWY_EXPORT makes no more
  } else {
    hwy::ChosenTarget chosen;
    chosen.Update(set.target);
    return table[chosen.GetIndex()];
  }
}

}  // namespace
}  // namespace nearwise::cpu
