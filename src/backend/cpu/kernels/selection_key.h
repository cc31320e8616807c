// Integer keys that selection compares instead of floats.
//
// The image of a value is a signed 32-bit integer in the order of the values, best first: -0 and +0 have the
// same image, and NaN has the largest. A key combines an image and a position in a 64-bit integer, so that
// one comparison orders by value, then position, and the keys of a row are distinct.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "nearwise/types.h"

namespace nearwise::cpu {

inline constexpr std::int32_t nan_image = std::numeric_limits<std::int32_t>::max();
inline constexpr std::int32_t infinity_image = 0x7F800000;  // of the worst number

// The bits of negative floats are ordered by magnitude: flips all but the sign to reverse this. Its own
// inverse.
inline std::int32_t flip_negative(std::int32_t bits) noexcept { return bits ^ ((bits >> 31) & 0x7FFFFFFF); }

// Image of a value that is not NaN.
inline std::int32_t image_of_number(float value, Order order) noexcept {
  // Adding zero turns -0 into +0.
  const float ordered = (order == Order::smallest ? value : -value) + 0.0F;
  return flip_negative(std::bit_cast<std::int32_t>(ordered));
}

// The number with this image; the sign of zero is not preserved.
inline float number_of_image(std::int32_t image, Order order) noexcept {
  const float ordered = std::bit_cast<float>(flip_negative(image));
  return order == Order::smallest ? ordered : -ordered;
}

// Threshold that a number passes if and only if its image is at most `image`. NaN: no number passes.
inline float threshold_of(std::int32_t image, Order order) noexcept {
  if (image > infinity_image) image = infinity_image;
  if (image < flip_negative(static_cast<std::int32_t>(0xFF800000U)))
    return std::numeric_limits<float>::quiet_NaN();
  // -1 is the image of no value (-0 maps to +0) but would convert to -0, which compares equal to +0.
  if (image == -1) image = -2;
  return number_of_image(image, order);
}

inline std::int64_t make_key(std::int32_t image, std::uint32_t position) noexcept {
  return static_cast<std::int64_t>((static_cast<std::uint64_t>(static_cast<std::uint32_t>(image)) << 32) |
                                   position);
}
inline std::int32_t image_of_key(std::int64_t key) noexcept { return static_cast<std::int32_t>(key >> 32); }
inline std::uint32_t position_of_key(std::int64_t key) noexcept { return static_cast<std::uint32_t>(key); }

}  // namespace nearwise::cpu
