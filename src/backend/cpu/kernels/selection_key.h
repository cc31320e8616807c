// What selection compares: integers instead of floats.
//
// The image of a value is a signed 32-bit integer in the order of the values, the best smallest: -0 and +0 have one
// image, every NaN has the largest there is. A key is an image and a position in one 64-bit integer, so that one
// comparison orders by value and then by position, and no two keys of a row are equal.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "nearwise/types.h"

namespace nearwise::cpu {

inline constexpr std::int32_t nan_image = std::numeric_limits<std::int32_t>::max();
inline constexpr std::int32_t infinity_image = 0x7F800000;  // the worst number's

// Negative floats have the order of their magnitudes, reversed: all bits but the sign are flipped. Its own inverse.
inline std::int32_t flip_negative(std::int32_t bits) noexcept { return bits ^ ((bits >> 31) & 0x7FFFFFFF); }

// Of a number; callers know their NaNs.
inline std::int32_t image_of_number(float value, Order order) noexcept {
  // Adding zero makes -0 of either sign +0.
  const float ordered = (order == Order::smallest ? value : -value) + 0.0F;
  return flip_negative(std::bit_cast<std::int32_t>(ordered));
}

// The number with this image; zero comes back as +0 or -0, whatever it was.
inline float number_of_image(std::int32_t image, Order order) noexcept {
  const float ordered = std::bit_cast<float>(flip_negative(image));
  return order == Order::smallest ? ordered : -ordered;
}

// A number passes (is as good as the threshold) if and only if its image is at most `image`. NaN: none passes.
inline float threshold_of(std::int32_t image, Order order) noexcept {
  if (image > infinity_image) image = infinity_image;
  if (image < flip_negative(static_cast<std::int32_t>(0xFF800000U)))
    return std::numeric_limits<float>::quiet_NaN();
  // No value has the image of -0, but comparisons would take it for zero.
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
