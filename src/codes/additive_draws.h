// The random numbers of additive encoding. They depend on a row's elements, not on its place: a row has the
// same code wherever it stands, and on every backend.
#pragma once

#include <bit>
#include <cstdint>

#include "core/math/random.h"

namespace nearwise {

// The key of a row's numbers is a hash of its elements: it begins with their number and takes one after the
// other.
constexpr std::uint64_t with_element(std::uint64_t key, float element) noexcept {
  key = (key ^ std::bit_cast<std::uint32_t>(element + 0.0F)) * 0x9E3779B97F4A7C15;
  return key ^ key >> 29;
}

// The numbers of codebooks [4 * group, 4 * group + 4) in an iteration.
constexpr PhiloxBlock perturbation_draws(std::uint64_t row_key, std::uint64_t seed, std::uint32_t iteration,
                                         std::uint32_t group) noexcept {
  constexpr std::uint32_t purpose = 0x4C53'0000;
  return philox({static_cast<std::uint32_t>(row_key), static_cast<std::uint32_t>(row_key >> 32), iteration,
                 purpose + group},
                {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

// Whether a code becomes a random one, the last byte of its number, where `needed` of the last `left` codes
// still should.
constexpr bool is_perturbed(std::uint32_t draw, std::uint32_t left, std::uint32_t needed) noexcept {
  return (draw >> 16) * left >> 16 < needed;
}

}  // namespace nearwise
