// Basic types: ids, element types, metrics, places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "nearwise/export.h"

namespace NEARWISE_EXPORT nearwise {

// Identifies a vector of the base.
using Id = std::int64_t;

// Fills the end of result rows that have fewer than k results.
inline constexpr Id no_id = -1;

// Storage only: arithmetic is done in wider types.
struct Float16 {
  std::uint16_t bits = 0;
};
struct BFloat16 {
  std::uint16_t bits = 0;
};

enum class ElementType : std::uint8_t { f32, f16, bf16, u8, i8 };

// sqeuclidean    sum of squared differences, smallest first
// euclidean      its square root, smallest first
// inner_product  the raw product, LARGEST first
// cosine         1 - cos, clamped to [0, 2], smallest first; 0 for a vector and itself;
//                1 between a zero vector and any vector (a zero vector has no direction)
enum class Metric : std::uint8_t { sqeuclidean, euclidean, inner_product, cosine };

// Which values are best.
enum class Order : std::uint8_t { smallest, largest };

// What a call does if there are fewer than k results.
enum class ShortRows : std::uint8_t {
  refuse,  // throws Error(invalid_argument)
  pad,     // fills up with no_id and +inf (-inf if the largest come first)
};

// What add() does with ids that the index already holds.
enum class OnDuplicate : std::uint8_t {
  refuse,   // throws Error(invalid_argument) and adds nothing
  replace,  // the new vector takes the place of the old one
  keep,     // the old vector stays, the new one is left out
};

enum class DeviceKind : std::uint8_t { cpu, cuda };

// Where memory resides or work runs: the host, or one CUDA device.
struct Place {
  DeviceKind kind = DeviceKind::cpu;
  int ordinal = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

std::size_t element_size(ElementType type);
std::string_view name(ElementType type);
std::string_view name(Metric metric);
std::string_view name(DeviceKind kind);
std::string_view name(OnDuplicate choice);
std::string name(Place place);  // "cpu", "cuda:0"

// The inverse of name(); throws Error(invalid_argument) listing the accepted names.
ElementType parse_element_type(std::string_view text);
Metric parse_metric(std::string_view text);

template <typename T>
struct ElementTypeOf;
template <>
struct ElementTypeOf<float> {
  static constexpr ElementType value = ElementType::f32;
};
template <>
struct ElementTypeOf<Float16> {
  static constexpr ElementType value = ElementType::f16;
};
template <>
struct ElementTypeOf<BFloat16> {
  static constexpr ElementType value = ElementType::bf16;
};
template <>
struct ElementTypeOf<std::uint8_t> {
  static constexpr ElementType value = ElementType::u8;
};
template <>
struct ElementTypeOf<std::int8_t> {
  static constexpr ElementType value = ElementType::i8;
};

}  // namespace nearwise
