// An entry of a neighbour list during graph construction: distance, row number, new flag.
//
// A signed 64-bit integer in the order of lists: by key (core/distance.h), then by number. No two neighbours
// of a row have equal entries, so the best of any set of them does not depend on the order in which they
// came.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace nearwise {

using NeighborEntry = std::int64_t;

// Pads lists that are not full; worse than any entry.
inline constexpr NeighborEntry empty_entry = std::numeric_limits<NeighborEntry>::max();
// Row numbers have 31 bits; the lowest bit of an entry is the new flag.
inline constexpr std::uint64_t max_entry_rows = (std::uint64_t{1} << 31) - 1;

// Integers that sort as the floats do; both zeros have one image.
constexpr std::int32_t entry_image(float key) noexcept {
  const auto bits = std::bit_cast<std::int32_t>(key + 0.0F);
  return bits ^ ((bits >> 31) & 0x7FFFFFFF);
}

constexpr NeighborEntry make_entry(float key, std::uint32_t number, bool is_new) noexcept {
  const auto image = static_cast<std::uint64_t>(static_cast<std::uint32_t>(entry_image(key)));
  return static_cast<NeighborEntry>(image << 32 | std::uint64_t{number} << 1 | (is_new ? 1U : 0U));
}

constexpr std::uint32_t number_of(NeighborEntry entry) noexcept {
  return static_cast<std::uint32_t>(entry) >> 1;
}
constexpr bool is_new(NeighborEntry entry) noexcept { return (entry & 1) != 0; }
constexpr NeighborEntry as_old(NeighborEntry entry) noexcept { return entry & ~NeighborEntry{1}; }
// Zeros are returned as +0.
constexpr float key_of(NeighborEntry entry) noexcept {
  const auto image = static_cast<std::int32_t>(entry >> 32);
  return std::bit_cast<float>(image ^ ((image >> 31) & 0x7FFFFFFF));
}

}  // namespace nearwise
