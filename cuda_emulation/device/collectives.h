// Barriers, fences and warp collectives. The last lane of the mask to arrive computes the result for all
// lanes.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cuda_emulation/device/qualifiers.h"

namespace cuda_emulation {

// Shuffles first, then votes and reductions: code relies on this order.
enum class Collective : std::uint8_t {
  shuffle,
  shuffle_up,
  shuffle_down,
  shuffle_xor,
  ballot,
  any,
  all,
  add,
  min_signed,
  max_signed,
  min_unsigned,
  max_unsigned,
  bit_and,
  bit_or,
  bit_xor,
  match_any,
  match_all,
  sync_warp
};
inline constexpr int collectives = static_cast<int>(Collective::sync_warp) + 1;

enum class Barrier : std::uint8_t { plain, count, all, any };

std::uint64_t warp_collective(Collective collective, unsigned mask, std::uint64_t value, int parameter,
                              int width, const char* file, int line);
int block_barrier(Barrier kind, bool predicate, const char* file, int line);
void grid_barrier(const char* file, int line);
void fence();
// Lets other threads run.
void yield(const char* file, int line);

template <typename T>
std::uint64_t to_bits(T value) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

template <typename T>
T from_bits(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <typename T>
T shuffle(Collective kind, unsigned mask, T value, int parameter, int width, const char* file, int line) {
  return from_bits<T>(warp_collective(kind, mask, to_bits(value), parameter, width, file, line));
}

inline std::uint32_t vote(Collective kind, unsigned mask, std::uint32_t value, const char* file, int line) {
  return static_cast<std::uint32_t>(warp_collective(kind, mask, value, 0, 32, file, line));
}

}  // namespace cuda_emulation

inline void __syncthreads(CUDA_EMULATION_LOCATION) {
  ::cuda_emulation::block_barrier(::cuda_emulation::Barrier::plain, false, file, line);
}
inline int __syncthreads_count(int predicate, CUDA_EMULATION_LOCATION) {
  return ::cuda_emulation::block_barrier(::cuda_emulation::Barrier::count, predicate != 0, file, line);
}
inline int __syncthreads_and(int predicate, CUDA_EMULATION_LOCATION) {
  return ::cuda_emulation::block_barrier(::cuda_emulation::Barrier::all, predicate != 0, file, line);
}
inline int __syncthreads_or(int predicate, CUDA_EMULATION_LOCATION) {
  return ::cuda_emulation::block_barrier(::cuda_emulation::Barrier::any, predicate != 0, file, line);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, CUDA_EMULATION_LOCATION) {
  ::cuda_emulation::warp_collective(::cuda_emulation::Collective::sync_warp, mask, 0, 0, 32, file, line);
}
inline void __threadfence() { ::cuda_emulation::fence(); }
inline void __threadfence_block() { ::cuda_emulation::fence(); }
inline void __threadfence_system() { ::cuda_emulation::fence(); }
inline void __nanosleep(unsigned, CUDA_EMULATION_LOCATION) { ::cuda_emulation::yield(file, line); }

template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, CUDA_EMULATION_LOCATION) {
  return ::cuda_emulation::shuffle(::cuda_emulation::Collective::shuffle, mask, value, source, width, file,
                                   line);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDA_EMULATION_LOCATION) {
  return ::cuda_emulation::shuffle(::cuda_emulation::Collective::shuffle_up, mask, value,
                                   static_cast<int>(delta), width, file, line);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDA_EMULATION_LOCATION) {
  return ::cuda_emulation::shuffle(::cuda_emulation::Collective::shuffle_down, mask, value,
                                   static_cast<int>(delta), width, file, line);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, CUDA_EMULATION_LOCATION) {
  return ::cuda_emulation::shuffle(::cuda_emulation::Collective::shuffle_xor, mask, value, lanes, width, file,
                                   line);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, CUDA_EMULATION_LOCATION) {
  return ::cuda_emulation::vote(::cuda_emulation::Collective::ballot, mask, predicate != 0, file, line);
}
inline int __any_sync(unsigned mask, int predicate, CUDA_EMULATION_LOCATION) {
  return static_cast<int>(
      ::cuda_emulation::vote(::cuda_emulation::Collective::any, mask, predicate != 0, file, line));
}
inline int __all_sync(unsigned mask, int predicate, CUDA_EMULATION_LOCATION) {
  return static_cast<int>(
      ::cuda_emulation::vote(::cuda_emulation::Collective::all, mask, predicate != 0, file, line));
}
template <typename T>
unsigned __match_any_sync(unsigned mask, T value, CUDA_EMULATION_LOCATION) {
  return static_cast<unsigned>(::cuda_emulation::warp_collective(
      ::cuda_emulation::Collective::match_any, mask, ::cuda_emulation::to_bits(value), 0, 32, file, line));
}
template <typename T>
unsigned __match_all_sync(unsigned mask, T value, int* same, CUDA_EMULATION_LOCATION) {
  const auto lanes = static_cast<unsigned>(::cuda_emulation::warp_collective(
      ::cuda_emulation::Collective::match_all, mask, ::cuda_emulation::to_bits(value), 0, 32, file, line));
  *same = lanes != 0;
  return lanes;
}

#define CUDA_EMULATION_REDUCE(name, type, kind)                                                      \
  inline type name(unsigned mask, type value, CUDA_EMULATION_LOCATION) {                             \
    return static_cast<type>(::cuda_emulation::vote(::cuda_emulation::Collective::kind, mask,        \
                                                    static_cast<std::uint32_t>(value), file, line)); \
  }
CUDA_EMULATION_REDUCE(__reduce_add_sync, unsigned, add)
CUDA_EMULATION_REDUCE(__reduce_add_sync, int, add)
CUDA_EMULATION_REDUCE(__reduce_min_sync, int, min_signed)
CUDA_EMULATION_REDUCE(__reduce_max_sync, int, max_signed)
CUDA_EMULATION_REDUCE(__reduce_min_sync, unsigned, min_unsigned)
CUDA_EMULATION_REDUCE(__reduce_max_sync, unsigned, max_unsigned)
CUDA_EMULATION_REDUCE(__reduce_and_sync, unsigned, bit_and)
CUDA_EMULATION_REDUCE(__reduce_or_sync, unsigned, bit_or)
CUDA_EMULATION_REDUCE(__reduce_xor_sync, unsigned, bit_xor)
#undef CUDA_EMULATION_REDUCE
