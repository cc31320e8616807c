// Sums of rows in f64, and of their squared distances to a point. Every target computes the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/kernels.h"

namespace nearwise::cpu {

// Sums and centre are padded with zeros to a multiple of this.
inline constexpr std::size_t sum_granule = 8;

struct SumRowsArgs {
  const std::byte* base = nullptr;
  std::size_t stride_bytes = 0;
  std::size_t dim = 0;
  const std::uint32_t* rows = nullptr;  // [count] row numbers
  std::size_t count = 0;
  const double* centre = nullptr;  // [dim, padded]
  double* sums = nullptr;          // [dim, padded] in and out; rows are added in order
};

// Returns the sum of the rows' squared distances to `centre`, each as core/distance.h defines it.
struct SumRowsKernels {
  using Function = double (*)(const SumRowsArgs&) noexcept;
  Function as_given[element_types];
  Function to_unit_length[element_types];  // rows are divided by their norm first; a zero row stays zero
};
const SumRowsKernels& sum_rows_kernels(InstructionSet set);

}  // namespace nearwise::cpu
