// How tensor cores see and add numbers.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace cuda_emulation {

// TF32 keeps 10 bits of the fraction. The hardware ignores the rest; a library may round before: this is the worse.
inline float as_tf32(float value) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xffffe000u);
}

inline float from_bfloat16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

// To nearest, ties to even.
inline float as_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return value;
  return std::bit_cast<float>((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
}

// Towards zero: tensor cores drop what does not fit when they add.
inline float truncate(double value) {
  const auto nearest = static_cast<float>(value);
  if (std::fabs(static_cast<double>(nearest)) <= std::fabs(value) || !std::isfinite(value)) return nearest;
  return std::nextafter(nearest, 0.0f);
}

}  // namespace cuda_emulation
