// Numbers of product quantization and rotations on the device. None is measured on a GPU yet.
#pragma once

#include <cstddef>

namespace nearwise::gpu::tuning {

// Rows that are on the device at a time. What is kept free for them, where memory is short.
inline constexpr std::size_t most_coded_rows = 16384;
inline constexpr std::size_t least_coded_rows = 64;

}  // namespace nearwise::gpu::tuning
