// Single-thread intrinsics: cached loads, bit operations, conversions, rounded arithmetic.
#pragma once

#include <cmath>
#include <type_traits>

#include "cuda_emulation/device/collectives.h"

template <typename T>
T __ldg(const T* address) {
  return *address;
}
template <typename T>
T __ldca(const T* address) {
  return *address;
}
template <typename T>
T __ldcs(const T* address) {
  return *address;
}
template <typename T>
void __stcs(T* address, std::type_identity_t<T> value) {
  *address = value;
}
// Bypasses L1, which does not see writes of other blocks; emulated as a volatile load.
template <typename T>
T __ldcg(const T* address) {
  return *const_cast<const volatile T*>(address);
}

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline int __ffsll(long long bits) { return __builtin_ffsll(bits); }
inline int __clz(int bits) { return bits == 0 ? 32 : __builtin_clz(static_cast<unsigned>(bits)); }
inline int __clzll(long long bits) {
  return bits == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(bits));
}
inline unsigned __brev(unsigned bits) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (bits >> i & 1u) << (31 - i);
  return reversed;
}

// Sums of products of bytes, and of 16-bit numbers and the lower or upper two bytes of the second operand.
inline unsigned __dp4a(unsigned left, unsigned right, unsigned sum) {
  for (unsigned shift = 0; shift < 32; shift += 8) sum += (left >> shift & 255u) * (right >> shift & 255u);
  return sum;
}
inline unsigned __dp2a_lo(unsigned left, unsigned right, unsigned sum) {
  return sum + (left & 65535u) * (right & 255u) + (left >> 16) * (right >> 8 & 255u);
}
inline unsigned __dp2a_hi(unsigned left, unsigned right, unsigned sum) {
  return __dp2a_lo(left, right >> 16, sum);
}

inline int __float_as_int(float value) {
  return ::cuda_emulation::from_bits<int>(::cuda_emulation::to_bits(value));
}
inline unsigned __float_as_uint(float value) {
  return ::cuda_emulation::from_bits<unsigned>(::cuda_emulation::to_bits(value));
}
inline float __int_as_float(int bits) {
  return ::cuda_emulation::from_bits<float>(::cuda_emulation::to_bits(bits));
}
inline float __uint_as_float(unsigned bits) {
  return ::cuda_emulation::from_bits<float>(::cuda_emulation::to_bits(bits));
}
inline long long __double_as_longlong(double value) {
  return ::cuda_emulation::from_bits<long long>(::cuda_emulation::to_bits(value));
}
inline double __longlong_as_double(long long bits) {
  return ::cuda_emulation::from_bits<double>(::cuda_emulation::to_bits(bits));
}

inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline float rsqrtf(float value) { return 1.0f / sqrtf(value); }

// Like fminf and fmaxf, these return the other operand if one is NaN.
template <typename T>
std::enable_if_t<std::is_arithmetic_v<T>, T> min(T a, T b) {
  return b < a || a != a ? b : a;
}
template <typename T>
std::enable_if_t<std::is_arithmetic_v<T>, T> max(T a, T b) {
  return a < b || a != a ? b : a;
}
