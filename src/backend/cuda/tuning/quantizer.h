// Tuning constants of quantizers and rotations. Not measured on a GPU yet.
#pragma once

#include <cstddef>

namespace nearwise::gpu::tuning {

// Rows on the device at a time. The minimum is reserved when memory is short.
inline constexpr std::size_t max_coded_rows = 16384;
inline constexpr std::size_t min_coded_rows = 64;

// Warps of a block that searches additive codes, one row each, if their tables fit into shared memory.
inline constexpr unsigned searching_warps = 4;
// Iterations per launch; cancellation is checked between launches.
inline constexpr std::size_t iterations_per_launch = 16;

}  // namespace nearwise::gpu::tuning
