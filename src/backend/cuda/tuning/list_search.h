// Tuning constants of inverted list search. Not measured on a GPU yet.
#pragma once

#include <cstddef>

namespace nearwise::gpu::tuning {

// Threads of a block that scans codes, and rows that a thread processes concurrently.
inline constexpr int scan_threads = 128;
inline constexpr int scanned_rows_per_thread = 4;

// Rows of a pair per block, and pairs that a block scans in sequence. Pairs of the same query share the
// tables in shared memory if all tables fit; enough blocks must remain for a large GPU.
inline constexpr unsigned scanned_rows_per_block = 4096;
inline constexpr std::size_t max_pairs_per_block = 16;
inline constexpr std::size_t target_scan_blocks = 4096;

// Table entries in shared memory: 16 KB, so that enough blocks are resident to hide latency.
inline constexpr unsigned table_entries = 4096;

// Rows on the device at a time. The minimum is reserved when memory is short.
inline constexpr std::size_t max_tile_rows = std::size_t{1} << 20;
inline constexpr std::size_t min_tile_rows = 256;

// Queries whose scores are on the device at a time.
inline constexpr std::size_t max_tile_queries = 4096;

}  // namespace nearwise::gpu::tuning
