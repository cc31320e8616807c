// Choice of the scan for a search: a fixed rule, so that the same search always uses the same scan.
#pragma once

#include "backend/cpu/kernels/kernels.h"

namespace nearwise::cpu {

// Longer integer vectors could overflow 32-bit sums: 16384 * 255 * 255 < 2^31.
inline constexpr std::size_t max_integer_dim = 16384;

// Fastest scan of the instruction set for vectors that are scanned as these types (PrepareArgs in
// backend/ops.h): integers only if both sides have the same integer type.
ScanKernel choose_scan(InstructionSet set, Metric metric, ElementType query_type, ElementType base_type,
                       std::size_t dim);

// The same for exact search, which evaluates the rows that scores do not exclude, and scans on with
// closer_kernel where they are too many: also scaled 8-bit integers.
ScanKernel choose_screen(InstructionSet set, Metric metric, ElementType query_type, ElementType base_type,
                         std::size_t dim);

// Expected time of one query and one base vector on one thread, to compare ways of searching. Not measured
// here: the same search always takes the same way.
double expected_pair_ns(const ScanKernel& scan, std::size_t dim);

// The f32 scan: any element type and metric, with the tightest error bound.
ScanKernel fallback_kernel(InstructionSet set);

// What scans where the scores of a coarse scan exclude too few rows: the next slower one with a tighter
// bound.
ScanKernel closer_kernel(InstructionSet set, Encoding coarse);

}  // namespace nearwise::cpu
