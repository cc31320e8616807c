// Tables over the codewords of one part: products with a vector, added to or subtracted from given values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/kernels.h"

namespace nearwise::cpu {

struct PartTableArgs {
  const float* columns = nullptr;  // [dim, codewords] of one part
  const float* start = nullptr;    // [codewords]
  const float* vector = nullptr;   // [dim]
  std::size_t dim = 0;
  std::size_t codewords = 0;  // 16 or 256
  float* table = nullptr;     // [codewords] out: start plus or minus the products; may alias start
};

struct PartSumsKernels {
  void (*add_products)(const PartTableArgs&) noexcept;
  void (*subtract_products)(const PartTableArgs&) noexcept;
};
const PartSumsKernels& part_sums_kernels(InstructionSet set);

}  // namespace nearwise::cpu
