// Tuning constants of local joins. Not measured on a GPU yet.
#pragma once

#include <cstddef>

namespace nearwise::gpu::tuning {

// Rows and columns of a tile, and threads of its block, with 4 x 4 pairs each.
inline constexpr int join_tile = 64;
inline constexpr int join_threads = 256;
// Resident blocks per multiprocessor that leave every thread 64 registers. Without this bound the compiler
// spills to fit more blocks (sm_100, sm_120).
inline constexpr int join_blocks = 65536 / 64 / join_threads;
// Elements per row in shared memory at a time.
inline constexpr int join_depth = 16;

// Tiles and members per launch: enough blocks for a large GPU, few copies.
inline constexpr std::size_t max_join_tiles = std::size_t{1} << 13;
inline constexpr std::size_t max_join_members = std::size_t{1} << 16;

// Threads of a sampling block, and resident blocks as above.
inline constexpr unsigned sample_threads = 128;
inline constexpr int sample_blocks = 65536 / 64 / sample_threads;

// Neighbourhoods sampled and joined per launch.
inline constexpr std::size_t neighborhood_rows = std::size_t{1} << 15;

// Rows are permuted on the host in pieces of this size.
inline constexpr std::size_t join_piece_bytes = std::size_t{1} << 20;

}  // namespace nearwise::gpu::tuning
