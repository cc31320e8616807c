// Codewords of one part of a code: a subspace of a product code, or a codebook of an additive code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/kernels/codes/code_rows.h"

namespace nearwise::gpu {

struct CodePart {
  std::uint32_t begin = 0;  // first element of the row
  std::uint32_t length = 0;
  const float* codewords = nullptr;  // [2^bits, length]
};

__device__ __forceinline__ CodePart part_of(const DeviceCodebooks& books, std::uint32_t part) {
  if (books.begins == nullptr)
    return {.length = books.dim,
            .codewords = books.codewords + (std::size_t{part} * books.dim << books.bits)};
  const std::uint32_t begin = books.begins[part];
  return {.begin = begin,
          .length = books.begins[part + 1] - begin,
          .codewords = books.codewords + (std::size_t{begin} << books.bits)};
}

}  // namespace nearwise::gpu
