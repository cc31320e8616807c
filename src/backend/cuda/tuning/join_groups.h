// Numbers of joining groups on the device. None is measured on a GPU yet.
#pragma once

#include <cstddef>

namespace nearwise::gpu::tuning {

// Members of a tile, in either direction, and threads of its block, with 4 x 4 pairs each.
inline constexpr int join_tile = 64;
inline constexpr int join_threads = 256;
// Blocks that are to fit on a multiprocessor: as many as leave every thread 64 registers. Without a number the compiler spills
// for more of them (sm_100, sm_120).
inline constexpr int join_blocks = 65536 / 64 / join_threads;
// Elements of rows that are in shared memory at a time.
inline constexpr int join_depth = 16;

// Tiles and members that are on the device at a time: blocks enough for a large GPU, and few copies.
inline constexpr std::size_t most_join_tiles = std::size_t{1} << 13;
inline constexpr std::size_t most_join_members = std::size_t{1} << 16;

// Threads of a block that draws, and blocks on a multiprocessor, likewise.
inline constexpr unsigned draw_threads = 128;
inline constexpr int draw_blocks = 65536 / 64 / draw_threads;

// Neighbourhoods that are drawn, and join, at a time.
inline constexpr std::size_t neighborhood_rows = std::size_t{1} << 15;

// Rows are brought into the order of their places on the host, in pieces of so many bytes.
inline constexpr std::size_t join_piece_bytes = std::size_t{1} << 20;

}  // namespace nearwise::gpu::tuning
