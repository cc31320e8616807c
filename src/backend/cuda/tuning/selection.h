// Numbers of selection on the device. None is measured on a GPU yet: they follow the paper and the counts of
// instructions (docs/algorithms/selection.md).
#pragma once

#include <array>
#include <cstddef>

namespace nearwise::gpu::tuning {

// The lengths of warp queues that are compiled; k is rounded up to one of them.
inline constexpr std::array select_capacities = {32, 64, 128, 256, 512, 1024};
inline constexpr int largest_select_capacity = select_capacities.back();

// Candidates of a warp that wait for a merge, 32 to a register: the more, the fewer merges, and the more instructions in
// each. Twice the 8 of the longest queues would halve the merges and double them in length.
template <int Capacity>
inline constexpr int candidate_registers = Capacity <= 32    ? 2
                                           : Capacity <= 128 ? 3
                                           : Capacity <= 256 ? 4
                                                             : 8;

// Values that a lane loads and tests at a time: one vote of the warp for all of them.
inline constexpr int values_per_lane = 8;

// So few are found by a reduction instead.
inline constexpr std::size_t most_reduced = 2;
inline constexpr int reduced_values_per_lane = 8;

// Rows, or parts of rows, of a block: one warp each.
inline constexpr int warps_per_block = 4;

// Registers of a thread, for a key of so many 32-bit words (2, or 4 with an id, also with a padded narrow one): its
// queue and its candidates, and all else. Long networks need some more (sm_100, sm_120).
template <int Capacity, int KeyWords>
inline constexpr int queue_registers = KeyWords*(Capacity / 32 + candidate_registers<Capacity>);
template <int Capacity, int KeyWords>
inline constexpr int other_registers = KeyWords == 4     ? 64 + Capacity / 32
                                       : Capacity <= 256 ? 56
                                                         : 84;

// Blocks that are to fit on a multiprocessor: as many as leave every thread these registers. Without a number the
// compiler trades spills for more blocks.
template <int Capacity, int KeyWords>
inline constexpr int resident_blocks = 65536 / (warps_per_block * 32) /
                                       (queue_registers<Capacity, KeyWords> +
                                        other_registers<Capacity, KeyWords>);

// Radix selection: a block per row or part of a row.
inline constexpr int radix_threads = 256;

// Sorting what it chose: entries of eight bytes that a block sorts in shared memory.
inline constexpr int sorted_run = 2048;
inline constexpr int sort_threads = 256;
inline constexpr std::size_t most_parts_per_launch = 65535;

// How rows are cut into parts. Tests cut shorter rows, into more of them.
struct RowCuts {
  // Warps that keep a large GPU busy: rows are cut while there are fewer of them.
  std::size_t wanted_parts = 4096;
  // A part is read for at least as long as it takes to begin and to merge its queue.
  std::size_t least_columns = 4096;
  // Columns of a part for every entry that it hands on: at least two, or rows would not become shorter.
  std::size_t columns_per_entry = 8;
};

}  // namespace nearwise::gpu::tuning
