// Number formats of matrix products. All give the same results: the error bound depends on the format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/math/score_bound.h"

namespace nearwise::gpu {

enum class Encoding : std::uint8_t {
  f32,   // FP32 units
  tf32,  // f32 with 11 significant bits, tensor cores
  bf16,  // 8 significant bits, tensor cores
};

// Parses ContextOptions::isa; empty: f32. Throws Error(invalid_argument) for an unknown name.
Encoding parse_encoding(std::string_view name);

constexpr Products products_of(Encoding encoding) {
  return encoding == Encoding::f32 ? Products::flushed_f32 : Products::truncated;
}

constexpr std::size_t encoded_bytes(Encoding encoding) { return encoding == Encoding::bf16 ? 2 : 4; }

// Columns needed to represent the 24-bit bias of a score.
constexpr std::size_t bias_columns(Encoding encoding) { return encoding == Encoding::f32 ? 1 : 3; }

}  // namespace nearwise::gpu
