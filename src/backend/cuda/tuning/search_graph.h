// Tuning constants of search graphs. Not measured on a GPU yet.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nearwise::gpu::tuning {

// Warps of a block, one query each, unless their shared memory is more than needs no kernel attribute.
inline constexpr unsigned graph_warps = 4;
// Resident blocks per multiprocessor that leave every thread 80 registers. Without this bound the compiler
// spills (sm_75).
inline constexpr int graph_blocks = 65536 / 80 / (graph_warps * 32);
// Widest beam in registers: 16 of a thread. Wider ones are in device memory.
inline constexpr std::size_t max_register_beam = 256;
// Slots of the set of seen rows per entry of the beam: each expansion sees about half a list of new rows.
inline constexpr std::size_t seen_slots_per_entry = 32;
// 16 KiB of shared memory: a warp of a block of three.
inline constexpr std::size_t max_shared_slots = 4096;
// Queries of a launch: enough warps for a large GPU.
inline constexpr std::size_t max_graph_queries = std::size_t{1} << 13;
// Pairs of queries and rows that are evaluated per launch.
inline constexpr std::size_t max_graph_pairs = std::size_t{1} << 18;

// Rows that are pruned per launch: enough blocks for a large GPU, few copies.
inline constexpr std::size_t max_pruned_rows = std::size_t{1} << 16;

}  // namespace nearwise::gpu::tuning
