// Prefetching. Always inlined, since kernels of several instruction sets use it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nearwise::cpu {

[[gnu::always_inline]] inline void prefetch(std::uintptr_t address, std::size_t bytes) {
  // All cache lines that overlap the range, which may be unaligned.
  for (std::uintptr_t line = address & ~std::uintptr_t{63}; line < address + bytes; line += 64)
    __builtin_prefetch(reinterpret_cast<const void*>(line));
}

// Distance in bytes for sequential reads: the hardware prefetcher is too late when there is little to
// compute. With one_query on vectors of 128 u8 and f32, 2, 4 and 8 KiB are equally fast, 1 KiB is too short.
inline constexpr std::size_t prefetch_distance = 4096;

// Prefetches `bytes` at that distance after `begin`. Addresses past the end are harmless.
[[gnu::always_inline]] inline void prefetch_ahead(const void* begin, std::size_t bytes) {
  prefetch(reinterpret_cast<std::uintptr_t>(begin) + prefetch_distance, bytes);
}

}  // namespace nearwise::cpu
