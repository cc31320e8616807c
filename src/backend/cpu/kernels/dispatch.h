// Selects a kernel table by instruction set, per Context; Highway's own dispatch selects once per process.
#pragma once

#include <cstddef>

#include "backend/cpu/kernels/instruction_set.h"
#include "hwy/highway.h"

namespace nearwise::cpu {
namespace {

// table: defined by HWY_EXPORT in the including file. In an anonymous namespace because its layout depends on
// the targets compiled into that file.
template <typename Function, std::size_t entries>
Function select(Function const (&table)[entries], InstructionSet set) {
  if constexpr (entries == 1) {
    return table[0];  // a single compiled target
  } else {
    hwy::ChosenTarget chosen;
    chosen.Update(set.target);
    return table[chosen.GetIndex()];
  }
}

}  // namespace
}  // namespace nearwise::cpu
