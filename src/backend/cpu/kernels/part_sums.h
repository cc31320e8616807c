// Tables over the codewords of one part: products with a vector, added to or subtracted from what is given.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/kernels.h"

namespace nearwise::cpu {

struct PartTableArgs {
  const float* columns = nullptr;  // of one part, [dim of the part, words]
  const float* start = nullptr;    // [words]
  const float* vector = nullptr;   // [dim of the part]
  std::size_t dim = 0;
  std::size_t codewords = 0;  // 16 or 256
  float* table = nullptr;     // [words] out: start plus or minus the products; may be `start`
};

struct PartSumsKernels {
  void (*add_products)(const PartTableArgs&) noexcept;
  void (*subtract_products)(const PartTableArgs&) noexcept;
};
const PartSumsKernels& part_sums_kernels(InstructionSet set);

}  // namespace nearwise::cpu
