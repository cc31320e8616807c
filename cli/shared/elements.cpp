#include "cli/shared/elements.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "cli/shared/exit_code.h"
#include "nearwise/error.h"

namespace nearwise::cli {
namespace {

float widen(float value) { return value; }
float widen(std::uint8_t value) { return static_cast<float>(value); }
float widen(std::int8_t value) { return static_cast<float>(value); }

float widen(BFloat16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }

float widen(Float16 value) {
  const std::uint32_t sign = (value.bits & 0x8000u) << 16;
  const std::uint32_t exponent = (value.bits >> 10) & 0x1fu;
  const std::uint32_t fraction = value.bits & 0x3ffu;
  if (exponent == 0) {  // zero and subnormals: fraction * 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  // 15 and 127 are the biases; infinities and NaN keep an exponent of all ones.
  const std::uint32_t wide_exponent = exponent == 0x1f ? 0xffu : exponent + 127 - 15;
  return std::bit_cast<float>(sign | wide_exponent << 23 | fraction << 13);
}

void narrow(float value, float& out) { out = value; }

// Adds half a unit of the last kept bit, minus one unless that bit is odd: the carry rounds to nearest even.
std::uint32_t round_away_bits(std::uint32_t magnitude, int dropped) {
  const std::uint32_t half_less_one = (1u << (dropped - 1)) - 1;
  return (magnitude + half_less_one + ((magnitude >> dropped) & 1u)) >> dropped;
}

void narrow(float value, BFloat16& out) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  // A NaN whose payload lies in the dropped bits must not become an infinity: set the quiet bit.
  out.bits = static_cast<std::uint16_t>(std::isnan(value) ? bits >> 16 | 0x40u : round_away_bits(bits, 16));
}

void narrow(float value, Float16& out) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t narrowed = 0;
  if (magnitude > 0x7f800000u) {
    narrowed = 0x7e00u | (magnitude >> 13 & 0x3ffu);  // NaN, made quiet
  } else if (magnitude >= 0x477ff000u) {
    narrowed = 0x7c00u;  // 65520 and above round to infinity
  } else if (magnitude >= 0x38800000u) {
    narrowed = round_away_bits(magnitude - (static_cast<std::uint32_t>(127 - 15) << 23), 13);
  } else {
    // Below 2^-14: the last bit of 0.5f weighs 2^-24, the unit of f16's subnormals, so the addition rounds
    // for us.
    narrowed = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  }
  out.bits = static_cast<std::uint16_t>(sign | narrowed);
}

// Whether a value was narrowed; false if it is beyond the range of an integer, or finite and becomes an
// infinity. nearbyint rounds in the mode of the process: to nearest, ties to even.
template <typename To>
bool narrow_in_range(float value, To& out) {
  if constexpr (std::is_integral_v<To>) {
    const float rounded = std::nearbyint(value);
    // False for NaN.
    const bool fits = rounded >= std::numeric_limits<To>::min() && rounded <= std::numeric_limits<To>::max();
    if (fits) out = static_cast<To>(rounded);
    return fits;
  } else {
    narrow(value, out);
    return !std::isfinite(value) || std::isfinite(widen(out));
  }
}

bool is_integer(ElementType type) { return type == ElementType::u8 || type == ElementType::i8; }

// Calls use(T{}) with the C++ type of an element type.
template <typename Use>
void with_type(ElementType type, Use use) {
  switch (type) {
    case ElementType::f32: return use(float{});
    case ElementType::f16: return use(Float16{});
    case ElementType::bf16: return use(BFloat16{});
    case ElementType::u8: return use(std::uint8_t{});
    case ElementType::i8: return use(std::int8_t{});
  }
}

// Calls use(row, column, value) with every element.
template <typename Use>
void for_each_element(RowsView rows, Use use) {
  with_type(rows.type(), [&]<typename Element>(Element) {
    for (std::size_t row = 0; row < rows.rows(); ++row)
      for (std::size_t column = 0; column < rows.dim(); ++column) {
        Element element;  // copied out: rows of some formats are not aligned for their type
        std::memcpy(&element, rows.row(row) + column * sizeof(Element), sizeof(Element));
        use(row, column, widen(element));
      }
  });
}

}  // namespace

bool is_exact(ElementType from, ElementType to) {
  // Eight bits of significand are enough for u8 and i8 in every float type.
  return from == to || to == ElementType::f32 || (is_integer(from) && !is_integer(to));
}

void convert_rows(RowsView rows, ElementType to, std::byte* out, std::size_t first_row) {
  with_type(to, [&]<typename To>(To) {
    for_each_element(rows, [&](std::size_t row, std::size_t column, float value) {
      To narrowed;
      if (!narrow_in_range(value, narrowed))
        throw InvalidData(
            fmt::format("row {}, column {}: {} does not fit {}", first_row + row, column, value, name(to)));
      std::memcpy(out, &narrowed, sizeof(To));
      out += sizeof(To);
    });
  });
}

void require_finite(RowsView rows, std::size_t first_row) {
  if (is_integer(rows.type())) return;
  for_each_element(rows, [&](std::size_t row, std::size_t column, float value) {
    if (!std::isfinite(value))
      throw InvalidData(
          fmt::format("row {}, column {}: {} is not a finite number", first_row + row, column, value));
  });
}

}  // namespace nearwise::cli
