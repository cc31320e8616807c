// Tuning constants of centroid_means. Not measured on a GPU yet.
#pragma once

#include <cstddef>

namespace nearwise::gpu::tuning {

// Rows summed per batch: copies of megabytes and enough blocks for a large GPU. The minimum is reserved when
// memory is short.
inline constexpr std::size_t max_summed_rows = 65536;
inline constexpr std::size_t min_summed_rows = 1024;

// Rows per segment that memory is sized for; smaller clusters make smaller batches.
inline constexpr std::size_t rows_per_segment = 8;

}  // namespace nearwise::gpu::tuning
