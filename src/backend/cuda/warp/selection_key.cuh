// What selection on the device compares: integers instead of floats.
//
// The image of a value is a signed 32-bit integer in the order of the values, the best smallest: -0 and +0 have one
// image, every NaN has the largest there is. A key is an image and what breaks its ties, most significant bits first:
// the position, or an id of the caller and then the position. No two elements of a row have equal keys, so networks
// and races between threads have one result. A key also knows where its element lies: value and id are read again
// when the answer is written.
#pragma once

#include <cstdint>

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/device/selection_task.h"
#include "backend/cuda/warp/row_part.cuh"

namespace nearwise::gpu {

inline constexpr std::int32_t best_image = INT32_MIN;  // better than any value's
inline constexpr std::int32_t nan_image = INT32_MAX;
inline constexpr std::int32_t infinity_image = 0x7F800000;  // the worst number's
inline constexpr std::uint32_t no_position = UINT32_MAX;

// Negative floats have the order of their magnitudes, reversed: all bits but the sign are flipped. Its own inverse.
__device__ __forceinline__ std::int32_t flip_negative(std::int32_t bits) {
  return bits ^ ((bits >> 31) & 0x7FFFFFFF);
}

// `turn` has the sign bit set where the largest values are the best: all that follows knows the smallest only.
__device__ __forceinline__ float turned(float value, std::int32_t turn) {
  return __int_as_float(__float_as_int(value) ^ turn);
}

__device__ __forceinline__ std::int32_t image_of(float turned_value) {
  // Adding zero makes -0 +0.
  const std::int32_t image = flip_negative(__float_as_int(turned_value + 0.0F));
  return turned_value == turned_value ? image : nan_image;
}

// The number with this image; NaN for the image of NaN.
__device__ __forceinline__ float number_of(std::int32_t image) {
  return __int_as_float(flip_negative(image));
}

__device__ __forceinline__ std::uint64_t join(std::uint32_t high, std::uint32_t low) {
  return (std::uint64_t{high} << 32) | low;
}

// Ties by position.
struct PositionKey {
  static constexpr bool ties_by_id = false;
  std::int64_t bits;  // image, position

  static __device__ __forceinline__ PositionKey make(std::int32_t image, std::uint32_t position,
                                                     const DeviceRowIds&) {
    return {static_cast<std::int64_t>(join(static_cast<std::uint32_t>(image), position))};
  }
  static __device__ __forceinline__ PositionKey best() { return make(best_image, 0, {}); }
  static __device__ __forceinline__ PositionKey worst() { return make(nan_image, no_position, {}); }
  __device__ __forceinline__ bool before(const PositionKey& other) const { return bits < other.bits; }
  __device__ __forceinline__ std::int32_t image() const { return static_cast<std::int32_t>(bits >> 32); }
  __device__ __forceinline__ std::uint32_t position() const { return static_cast<std::uint32_t>(bits); }

  // The same word of another lane's key, by whatever `shuffle` does.
  template <typename Shuffle>
  __device__ __forceinline__ PositionKey shuffled(const Shuffle& shuffle) const {
    return {shuffle(bits)};
  }
};

// Ties by a caller's 32-bit id, then by position.
struct NarrowIdKey {
  static constexpr bool ties_by_id = true;
  std::int64_t bits;  // image, id
  std::uint32_t position_bits;

  static __device__ __forceinline__ NarrowIdKey make(std::int32_t image, std::uint32_t position,
                                                     const DeviceRowIds& ids) {
    return {static_cast<std::int64_t>(join(static_cast<std::uint32_t>(image), ids.narrow[position])),
            position};
  }
  static __device__ __forceinline__ NarrowIdKey best() {
    return {static_cast<std::int64_t>(join(static_cast<std::uint32_t>(best_image), 0)), 0};
  }
  static __device__ __forceinline__ NarrowIdKey worst() {
    return {static_cast<std::int64_t>(join(static_cast<std::uint32_t>(nan_image), UINT32_MAX)), no_position};
  }
  __device__ __forceinline__ bool before(const NarrowIdKey& other) const {
    return bits < other.bits || (bits == other.bits && position_bits < other.position_bits);
  }
  __device__ __forceinline__ std::int32_t image() const { return static_cast<std::int32_t>(bits >> 32); }
  __device__ __forceinline__ std::uint32_t position() const { return position_bits; }

  template <typename Shuffle>
  __device__ __forceinline__ NarrowIdKey shuffled(const Shuffle& shuffle) const {
    return {shuffle(bits), shuffle(position_bits)};
  }
};

// Ties by a caller's 64-bit id, then by position. It may be given with 32 bits.
struct WideIdKey {
  static constexpr bool ties_by_id = true;
  std::int64_t high;  // image, upper half of the id
  std::uint64_t low;  // lower half of the id, position

  static __device__ __forceinline__ WideIdKey make(std::int32_t image, std::uint32_t position,
                                                   const DeviceRowIds& ids) {
    // Negative ids come first: with the sign bit turned the order is that of unsigned numbers.
    const std::uint64_t id = static_cast<std::uint64_t>(ids.at(position)) ^ (std::uint64_t{1} << 63);
    return {static_cast<std::int64_t>(
                join(static_cast<std::uint32_t>(image), static_cast<std::uint32_t>(id >> 32))),
            join(static_cast<std::uint32_t>(id), position)};
  }
  static __device__ __forceinline__ WideIdKey best() {
    return {static_cast<std::int64_t>(join(static_cast<std::uint32_t>(best_image), 0)), 0};
  }
  static __device__ __forceinline__ WideIdKey worst() {
    return {static_cast<std::int64_t>(join(static_cast<std::uint32_t>(nan_image), UINT32_MAX)),
            join(UINT32_MAX, no_position)};
  }
  __device__ __forceinline__ bool before(const WideIdKey& other) const {
    return high < other.high || (high == other.high && low < other.low);
  }
  __device__ __forceinline__ std::int32_t image() const { return static_cast<std::int32_t>(high >> 32); }
  __device__ __forceinline__ std::uint32_t position() const { return static_cast<std::uint32_t>(low); }

  template <typename Shuffle>
  __device__ __forceinline__ WideIdKey shuffled(const Shuffle& shuffle) const {
    return {shuffle(high), shuffle(low)};
  }
};

template <Ties ties>
struct KeyOf;
template <>
struct KeyOf<Ties::positions> {
  using Type = PositionKey;
};
template <>
struct KeyOf<Ties::narrow_ids> {
  using Type = NarrowIdKey;
};
template <>
struct KeyOf<Ties::wide_ids> {
  using Type = WideIdKey;
};

}  // namespace nearwise::gpu
