// In which numbers rows are multiplied. All give the same answer: the bound knows what each may lose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/score_bound.h"

namespace nearwise::gpu {

enum class Encoding : std::uint8_t {
  f32,   // by the ordinary units
  tf32,  // f32 with 11 significant bits, by tensor cores
  bf16,  // 8 significant bits, by tensor cores
};

// By its name, which is that of ContextOptions::isa; empty: f32. Throws Error(invalid_argument) for another.
Encoding parse_encoding(std::string_view name);

constexpr Products products_of(Encoding encoding) {
  return encoding == Encoding::f32 ? Products::flushed_f32 : Products::truncated;
}

constexpr std::size_t encoded_bytes(Encoding encoding) { return encoding == Encoding::bf16 ? 2 : 4; }

// Columns that the bias of a score needs for the 24 bits of f32.
constexpr std::size_t bias_columns(Encoding encoding) { return encoding == Encoding::f32 ? 1 : 3; }

}  // namespace nearwise::gpu
