// Tuning constants of selection. Not measured on a GPU yet: they follow the WarpSelect paper and instruction
// counts (docs/algorithms/selection.md).
#pragma once

#include <array>
#include <cstddef>

namespace nearwise::gpu::tuning {

// Compiled lengths of the warp queue; k is rounded up to one of them.
inline constexpr std::array select_capacities = {32, 64, 128, 256, 512, 1024};
inline constexpr int max_select_capacity = select_capacities.back();

// Length of a warp's candidate queue in registers of 32: longer queues mean fewer, but longer merges. Twice
// the 8 of the longest queues would halve the merges and double their length.
template <int Capacity>
inline constexpr int candidate_registers = Capacity <= 32    ? 2
                                           : Capacity <= 128 ? 3
                                           : Capacity <= 256 ? 4
                                                             : 8;

// Values that a lane loads and tests per round, with one vote of the warp.
inline constexpr int values_per_lane = 8;

// Up to this k, selection is a reduction.
inline constexpr std::size_t max_reduced_k = 2;
inline constexpr int reduced_values_per_lane = 8;

// Rows or parts of rows per block, one warp each.
inline constexpr int warps_per_block = 4;

// Registers of a thread for a key of `KeyWords` 32-bit words (2, or 4 with an id, padding included): warp
// queue, candidates, and the rest. Long networks need more (sm_100, sm_120).
template <int Capacity, int KeyWords>
inline constexpr int queue_registers = KeyWords*(Capacity / 32 + candidate_registers<Capacity>);
template <int Capacity, int KeyWords>
inline constexpr int other_registers = KeyWords == 4     ? 64 + Capacity / 32
                                       : Capacity <= 256 ? 56
                                                         : 84;

// Resident blocks per multiprocessor that leave every thread these registers. Without this bound the compiler
// spills to fit more blocks.
template <int Capacity, int KeyWords>
inline constexpr int resident_blocks = 65536 / (warps_per_block * 32) /
                                       (queue_registers<Capacity, KeyWords> +
                                        other_registers<Capacity, KeyWords>);

// Radix selection: a block per row or part of a row.
inline constexpr int radix_threads = 256;

// Sort of its output: 8-byte entries that a block sorts in shared memory.
inline constexpr int sorted_run = 2048;
inline constexpr int sort_threads = 256;
inline constexpr std::size_t max_parts_per_launch = 65535;

// How rows are split into parts. Tests split shorter rows.
struct RowSplit {
  // Warps that keep a large GPU busy: rows are split if there are fewer.
  std::size_t target_parts = 4096;
  // Minimum length of a part: amortises the start and the merge of its queue.
  std::size_t min_columns = 4096;
  // Columns of a part per output entry: at least two, or rows would not become shorter.
  std::size_t columns_per_entry = 8;
};

}  // namespace nearwise::gpu::tuning
