// Numbers of the search in inverted lists on the device. None is measured on a GPU yet.
#pragma once

#include <cstddef>

namespace nearwise::gpu::tuning {

// Threads of a block that scans codes, and the rows that each has under way.
inline constexpr int scan_threads = 128;
inline constexpr int scanned_rows_per_thread = 4;

// Rows of a pair that a block has, and pairs that it takes one after another: it loads tables once for all of them that have
// the same query, where all tables fit. As many as leave enough blocks for a large GPU.
inline constexpr unsigned scanned_rows_per_block = 4096;
inline constexpr std::size_t most_pairs_per_block = 16;
inline constexpr std::size_t wanted_scan_blocks = 4096;

// Entries of tables in shared memory, 16 KB: blocks enough fit on a multiprocessor to hide latency.
inline constexpr unsigned table_entries = 4096;

// Rows on the device at a time, with all that belongs to them. What is kept free for them, where memory is short.
inline constexpr std::size_t most_tile_rows = std::size_t{1} << 20;
inline constexpr std::size_t least_tile_rows = 256;

// Queries whose scores are there at a time.
inline constexpr std::size_t most_tile_queries = 4096;

}  // namespace nearwise::gpu::tuning
