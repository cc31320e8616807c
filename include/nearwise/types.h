// The vocabulary of the interface: ids, element types, metrics, places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "nearwise/export.h"

namespace NEARWISE_EXPORT nearwise {

// Identifies a row of the base. 64 bits everywhere in the interface.
using Id = std::int64_t;

// Fills the end of a result row that has fewer than k entries (short_rows = pad).
inline constexpr Id no_id = -1;

// Storage types only: they carry the bits of a number, arithmetic happens in wider types.
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

// Which values are the best ones.
enum class Order : std::uint8_t { smallest, largest };

// What to do where fewer than k can be found.
enum class ShortRows : std::uint8_t {
  refuse,  // an error
  pad,     // rows end in no_id with the worst possible value: +inf, or -inf where the largest come first
};

enum class DeviceKind : std::uint8_t { cpu, cuda };

// Where memory lives or work runs: host memory and the CPU, or one CUDA device.
struct Place {
  DeviceKind kind = DeviceKind::cpu;
  int ordinal = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

std::size_t element_size(ElementType type);
std::string_view name(ElementType type);
std::string_view name(Metric metric);
std::string_view name(DeviceKind kind);
std::string name(Place place);  // "cpu", "cuda:0"

// The inverse of name(); throws Error(invalid_argument) with the accepted words.
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
