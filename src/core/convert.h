// Conversions between storage types, one number at a time; widening is exact. Kernels have vector forms
// of it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace nearwise {

constexpr float to_float(float value) noexcept { return value; }
constexpr float to_float(std::uint8_t value) noexcept { return value; }
constexpr float to_float(std::int8_t value) noexcept { return value; }
constexpr float to_float(BFloat16 value) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}
constexpr float to_float(Float16 value) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000U) << 16;
  const std::uint32_t exponent = value.bits >> 10 & 0x1FU;
  const std::uint32_t mantissa = value.bits & 0x3FFU;
  if (exponent == 0) {  // zero or denormal: mantissa * 2^-24
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide_exponent = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide_exponent << 23 | mantissa << 13);
}

// The nearest number of half precision, the even one of two; infinity from 65520 on.
constexpr Float16 to_float16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return {static_cast<std::uint16_t>(sign | 0x7E00U)};   // NaN
  if (magnitude >= 0x477FF000U) return {static_cast<std::uint16_t>(sign | 0x7C00U)};  // 65520
  if (magnitude < 0x38800000U) {  // below 2^-14: a multiple of 2^-24, which the addition rounds to
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return {static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000U))};
  }
  const std::uint32_t odd = magnitude >> 13 & 1U;
  return {static_cast<std::uint16_t>(sign | (magnitude - 0x38000000U + 0xFFFU + odd) >> 13)};
}

// Calls visit(T{}) with the storage type that `type` names.
template <typename Visitor>
decltype(auto) visit_element_type(ElementType type, Visitor&& visit) {
  switch (type) {
    case ElementType::f16: return visit(Float16{});
    case ElementType::bf16: return visit(BFloat16{});
    case ElementType::u8: return visit(std::uint8_t{});
    case ElementType::i8: return visit(std::int8_t{});
    case ElementType::f32: break;
  }
  return visit(float{});
}

// Element `index` of a row. Rows may lie at any address (a .bvecs row has a 4-byte head), hence the memcpy.
template <typename T>
float element(const std::byte* row, std::size_t index) noexcept {
  T value;
  std::memcpy(&value, row + index * sizeof(T), sizeof(T));
  return to_float(value);
}

template <typename T>
void row_to_double(const std::byte* row, std::size_t dim, double* out) noexcept {
  for (std::size_t i = 0; i < dim; ++i) out[i] = static_cast<double>(element<T>(row, i));
}

inline void row_to_double(const RowsView& rows, std::size_t index, double* out) noexcept {
  visit_element_type(rows.type(),
                     [&](auto tag) { row_to_double<decltype(tag)>(rows.row(index), rows.dim(), out); });
}

}  // namespace nearwise
