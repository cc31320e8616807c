// Which scan serves a search. A rule, not a measurement: the same search takes the same way every time.
#pragma once

#include "backend/cpu/kernels/kernels.h"

namespace nearwise::cpu {

// Longer integer vectors could overflow 32-bit sums of products.
inline constexpr std::size_t most_integer_dim = 16384;

// The fastest scan of the instruction set for rows of these types.
// `bytes`: both are f32 and hold whole numbers from 0 to 255.
ScanKernel choose_scan(InstructionSet set, Metric metric, ElementType query_type, ElementType base_type,
                       std::size_t dim, bool bytes = false);

// The scan in f32: any types, any metric, and the tightest bound on its scores.
ScanKernel careful_scan(InstructionSet set);

}  // namespace nearwise::cpu
