// Rounds numbers to the 16-bit types, for generating problems. To nearest, ties to even, saturating.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "nearwise/types.h"

namespace nearwise::support {

// smallest_exponent: of the smallest normal number, 2^smallest_exponent.
inline std::uint16_t encode_16_bits(double value, int fraction_bits, int smallest_exponent, double largest) {
  const int sign = std::signbit(value) ? 1 << 15 : 0;
  const double magnitude = std::min(std::fabs(value), largest);
  if (magnitude == 0.0) return static_cast<std::uint16_t>(sign);
  const int exponent = std::max(std::ilogb(magnitude), smallest_exponent);
  // Units in the last place. A normal number has 2^fraction_bits of them or more, which is what lifts its
  // exponent field from 0 to 1; rounding up to the next power of two carries into that field by itself.
  const int units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, fraction_bits - exponent)));
  return static_cast<std::uint16_t>(sign + ((exponent - smallest_exponent) << fraction_bits) + units);
}

inline Float16 to_float16(double value) { return {encode_16_bits(value, 10, -14, 65504.0)}; }

inline BFloat16 to_bfloat16(double value) { return {encode_16_bits(value, 7, -126, 0x1.FEp127)}; }

}  // namespace nearwise::support
