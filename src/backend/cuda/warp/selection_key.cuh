// Integer keys of selection.
//
// The image of a value is a signed 32-bit integer with the order of the values, best first: -0 and +0 have
// the same image, every NaN has the largest. A key is an image and its tie-break, most significant bits
// first: the position, or an id of the caller and then the position. Keys of a row are distinct, so sorting
// networks and concurrent threads have one result. A key contains the position of its element, from which
// value and id are read again for the output.
#pragma once

#include <cstdint>

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/device/selection_task.h"
#include "backend/cuda/warp/row_part.cuh"

namespace nearwise::gpu {

inline constexpr std::int32_t best_image = INT32_MIN;  // better than the image of any value
inline constexpr std::int32_t nan_image = INT32_MAX;
inline constexpr std::int32_t infinity_image = 0x7F800000;  // of the worst number
inline constexpr std::uint32_t no_position = UINT32_MAX;

// Reverses the order of negative floats by flipping all bits but the sign. Its own inverse.
__device__ __forceinline__ std::int32_t flip_negative(std::int32_t bits) {
  return bits ^ ((bits >> 31) & 0x7FFFFFFF);
}

// `sign_mask` is the sign bit if the largest values are the best, so that the code below only selects the
// smallest.
__device__ __forceinline__ float oriented(float value, std::int32_t sign_mask) {
  return __int_as_float(__float_as_int(value) ^ sign_mask);
}

__device__ __forceinline__ std::int32_t image_of(float oriented_value) {
  // Adding zero turns -0 into +0.
  const std::int32_t image = flip_negative(__float_as_int(oriented_value + 0.0F));
  return oriented_value == oriented_value ? image : nan_image;
}

// The number with this image; NaN for the image of NaN.
__device__ __forceinline__ float number_of(std::int32_t image) {
  return __int_as_float(flip_negative(image));
}

__device__ __forceinline__ std::uint64_t concatenate(std::uint32_t high, std::uint32_t low) {
  return (std::uint64_t{high} << 32) | low;
}

// Ties by position.
struct PositionKey {
  static constexpr bool ties_by_id = false;
  std::int64_t bits;  // image, position

  static __device__ __forceinline__ PositionKey make(std::int32_t image, std::uint32_t position,
                                                     const DeviceRowIds&) {
    return {static_cast<std::int64_t>(concatenate(static_cast<std::uint32_t>(image), position))};
  }
  static __device__ __forceinline__ PositionKey best() { return make(best_image, 0, {}); }
  static __device__ __forceinline__ PositionKey worst() { return make(nan_image, no_position, {}); }
  __device__ __forceinline__ bool before(const PositionKey& other) const { return bits < other.bits; }
  __device__ __forceinline__ std::int32_t image() const { return static_cast<std::int32_t>(bits >> 32); }
  __device__ __forceinline__ std::uint32_t position() const { return static_cast<std::uint32_t>(bits); }

  // Applies `shuffle` to every word of the key.
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
    return {static_cast<std::int64_t>(concatenate(static_cast<std::uint32_t>(image), ids.narrow[position])),
            position};
  }
  static __device__ __forceinline__ NarrowIdKey best() {
    return {static_cast<std::int64_t>(concatenate(static_cast<std::uint32_t>(best_image), 0)), 0};
  }
  static __device__ __forceinline__ NarrowIdKey worst() {
    return {static_cast<std::int64_t>(concatenate(static_cast<std::uint32_t>(nan_image), UINT32_MAX)),
            no_position};
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

// Ties by a caller's 64-bit id, then by position. The id may be stored in 32 bits.
struct WideIdKey {
  static constexpr bool ties_by_id = true;
  std::int64_t high;  // image, upper half of the id
  std::uint64_t low;  // lower half of the id, position

  static __device__ __forceinline__ WideIdKey make(std::int32_t image, std::uint32_t position,
                                                   const DeviceRowIds& ids) {
    // Flipping the sign bit sorts negative ids first in unsigned order.
    const std::uint64_t id = static_cast<std::uint64_t>(ids.at(position)) ^ (std::uint64_t{1} << 63);
    return {static_cast<std::int64_t>(
                concatenate(static_cast<std::uint32_t>(image), static_cast<std::uint32_t>(id >> 32))),
            concatenate(static_cast<std::uint32_t>(id), position)};
  }
  static __device__ __forceinline__ WideIdKey best() {
    return {static_cast<std::int64_t>(concatenate(static_cast<std::uint32_t>(best_image), 0)), 0};
  }
  static __device__ __forceinline__ WideIdKey worst() {
    return {static_cast<std::int64_t>(concatenate(static_cast<std::uint32_t>(nan_image), UINT32_MAX)),
            concatenate(UINT32_MAX, no_position)};
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
