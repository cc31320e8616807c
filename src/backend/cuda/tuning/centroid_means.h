// Numbers of centroid_means on the device. None is measured on a GPU yet.
#pragma once

#include <cstddef>

namespace nearwise::gpu::tuning {

// Rows that are summed at a time: copies of megabytes, and blocks enough for a large GPU. What is kept free for them, where
// memory is short.
inline constexpr std::size_t most_summed_rows = 65536;
inline constexpr std::size_t least_summed_rows = 1024;

// There is memory for one segment per so many rows; where clusters are smaller fewer rows are summed at a time.
inline constexpr std::size_t rows_per_segment = 8;

}  // namespace nearwise::gpu::tuning
