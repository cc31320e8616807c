// Input rounding and accumulation of tensor cores.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace cuda_emulation {

// TF32 has 10 fraction bits. Truncates like the hardware; a library may round first, which loses less.
inline float as_tf32(float value) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xffffe000u);
}

inline float from_bfloat16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

// Rounds to nearest, ties to even.
inline float as_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return value;
  return std::bit_cast<float>((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
}

// Rounds towards zero, as tensor cores do when they accumulate.
inline float truncate(double value) {
  const auto nearest = static_cast<float>(value);
  if (std::fabs(static_cast<double>(nearest)) <= std::fabs(value) || !std::isfinite(value)) return nearest;
  return std::nextafter(nearest, 0.0f);
}

}  // namespace cuda_emulation
