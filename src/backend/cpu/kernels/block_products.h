// Products of blocks of f64 matrices. Multiplication and subtraction are rounded separately, and the terms of
// an element are subtracted in ascending order: every target computes the same bits.
#pragma once

#include <cstddef>

#include "backend/cpu/kernels/kernels.h"

namespace nearwise::cpu {

// Rows and columns of a block of sums, and columns of the factors.
inline constexpr std::size_t block_width = 32;

struct BlockProductKernels {
  // sums(i, j) -= left(k, i) * right(k, j) for k = 0 ... terms - 1. sums: [block_width, block_width], left
  // and right: [terms, block_width]. The factors of 64 terms fit an L1 cache of 32 KiB.
  void (*subtract)(double* sums, const double* left, const double* right, std::size_t terms) noexcept;
};
const BlockProductKernels& block_product_kernels(InstructionSet set);

}  // namespace nearwise::cpu
