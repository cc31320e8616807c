// Numbers of exact search on the device. None is measured on a GPU yet.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nearwise::gpu::tuning {

// What a search uses beside its rows and lists, where it may.
inline constexpr std::uint64_t good_working_bytes = std::uint64_t{256} << 20;

// Of so few rows (centroids, say) the nearest is found by a reduction. Where the two best scores are too close all rows
// are evaluated for that query: more of them would make duplicates expensive.
inline constexpr std::size_t few_rows = 4096;

// Pinned memory is filled and copied in such pieces, two of them; a row of the most elements fits. Inputs smaller than the
// other number are not worth it.
inline constexpr std::size_t staging_piece_bytes = 8 << 20;
inline constexpr std::size_t least_staged_bytes = 256 << 10;

}  // namespace nearwise::gpu::tuning
