// Splits a scan into tasks for threads, and into steps between checks of the cancel flag.
#pragma once

#include <algorithm>
#include <cstddef>

#include "backend/cpu/rows/prepared_rows.h"

namespace nearwise::cpu {

// Tasks per thread: the last ones to finish leave other threads idle for at most 1/4 of the block. More tasks
// read the block more often: with 16, memory bandwidth limited the scan (AMX, u8, d = 128).
inline constexpr std::size_t tasks_per_thread = 4;

// Query panels per task.
inline std::size_t group_panels(const PackedRows& queries, int threads) {
  const std::size_t in_cache = queries.kernel.query_group_bytes / queries.panel_bytes();
  const std::size_t to_share = queries.panel_count() / (tasks_per_thread * static_cast<std::size_t>(threads));
  return std::max<std::size_t>(1, std::min(in_cache, std::max<std::size_t>(to_share, 4)));
}

// Multiplications between checks of the cancel flag: less than 1 ms with AVX-512 or AMX, tens of ms in scalar
// code. With fewer, tiles would have too few products to compare scores meanwhile.
inline std::size_t step_products(const ScanKernel& kernel) {
  return std::size_t{multiplies_tiles(kernel) ? 256U : 16U} << 20;
}

// Base panels between checks of the cancel flag.
inline std::size_t step_panels(const PackedRows& block, std::size_t queries) {
  const std::size_t in_cache = block.kernel.base_step_bytes / block.panel_bytes();
  const std::size_t soon = step_products(block.kernel) / (block.dim * block.width * queries);
  return std::max<std::size_t>(1, std::min(in_cache, soon));
}

}  // namespace nearwise::cpu
