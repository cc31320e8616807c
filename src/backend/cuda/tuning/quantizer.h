// Numbers of quantization and rotations on the device. None is measured on a GPU yet.
#pragma once

#include <cstddef>

namespace nearwise::gpu::tuning {

// Rows that are on the device at a time. What is kept free for them, where memory is short.
inline constexpr std::size_t most_coded_rows = 16384;
inline constexpr std::size_t least_coded_rows = 64;

// Warps of a block that searches for additive codes, each for those of one row, where shared memory suffices for their tables.
inline constexpr unsigned searching_warps = 4;
// Iterations of that search in one launch: cancellation is looked at in between.
inline constexpr std::size_t iterations_at_once = 16;

}  // namespace nearwise::gpu::tuning
