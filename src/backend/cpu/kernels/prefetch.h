// Asking for memory before it is needed. Always inlined: kernels of several instruction sets share it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nearwise::cpu {

[[gnu::always_inline]] inline void prefetch(std::uintptr_t address, std::size_t bytes) {
  // Every line that holds some of them: rows begin anywhere.
  for (std::uintptr_t line = address & ~std::uintptr_t{63}; line < address + bytes; line += 64)
    __builtin_prefetch(reinterpret_cast<const void*>(line));
}

// Rows that are read one after the other: the hardware alone fetches them too late where there is little to compute.
// By one_query on rows of 128 u8 and f32, 2, 4 and 8 KiB ahead are alike, 1 KiB is too late.
inline constexpr std::size_t prefetch_distance = 4096;

// Asks for what lies that far behind `bytes` at `begin`; past the end of the rows it asks for nothing of use, and no
// address is wrong.
[[gnu::always_inline]] inline void prefetch_ahead(const void* begin, std::size_t bytes) {
  prefetch(reinterpret_cast<std::uintptr_t>(begin) + prefetch_distance, bytes);
}

}  // namespace nearwise::cpu
