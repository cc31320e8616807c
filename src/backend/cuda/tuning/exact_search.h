// Tuning constants of exact search. Not measured on a GPU yet.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nearwise::gpu::tuning {

// Working memory in addition to rows and lists, if the budget allows: 256 MiB.
inline constexpr std::uint64_t target_working_bytes = std::uint64_t{256} << 20;

// Up to this many base rows (e.g. centroids), the nearest row is found by a reduction. If the two best scores
// are too close, all rows are evaluated for that query, which would make duplicates expensive among more
// rows.
inline constexpr std::size_t max_reduced_rows = 4096;

// Half of a pinned staging buffer: 8 MiB hold a row of maximal length. Inputs below the minimum are copied
// directly.
inline constexpr std::size_t staging_piece_bytes = 8 << 20;
inline constexpr std::size_t min_staged_bytes = 256 << 10;

}  // namespace nearwise::gpu::tuning
