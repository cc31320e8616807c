#include "core/random.h"

#include <cmath>
#include <numbers>

namespace nearwise {
namespace {

__extension__ using Wide = unsigned __int128;

}  // namespace

PhiloxBlock philox(const PhiloxBlock& counter, std::array<std::uint32_t, 2> key) noexcept {
  constexpr std::uint64_t multiplier_0 = 0xD2511F53;
  constexpr std::uint64_t multiplier_1 = 0xCD9E8D57;
  constexpr std::uint32_t weyl_0 = 0x9E3779B9;
  constexpr std::uint32_t weyl_1 = 0xBB67AE85;
  PhiloxBlock x = counter;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product_0 = multiplier_0 * x[0];
    const std::uint64_t product_1 = multiplier_1 * x[2];
    x = {static_cast<std::uint32_t>(product_1 >> 32) ^ x[1] ^ key[0], static_cast<std::uint32_t>(product_1),
         static_cast<std::uint32_t>(product_0 >> 32) ^ x[3] ^ key[1], static_cast<std::uint32_t>(product_0)};
    key[0] += weyl_0;
    key[1] += weyl_1;
  }
  return x;
}

PhiloxBlock Random::block(std::uint64_t index) const noexcept {
  return philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                 static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
                {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
}

std::uint64_t Random::bits(std::uint64_t index) const noexcept {
  const PhiloxBlock x = block(index);
  return static_cast<std::uint64_t>(x[1]) << 32 | x[0];
}

std::uint64_t Random::below(std::uint64_t index, std::uint64_t bound) const noexcept {
  // The high half of a 64 x 64 bit product scales [0, 2^64) to [0, bound).
  return static_cast<std::uint64_t>(static_cast<Wide>(bits(index)) * bound >> 64);
}

double Random::uniform(std::uint64_t index) const noexcept {
  return static_cast<double>(bits(index) >> 11) * 0x1p-53;
}

double Random::normal(std::uint64_t index) const noexcept {
  const PhiloxBlock x = block(index);
  const std::uint64_t high = static_cast<std::uint64_t>(x[1]) << 32 | x[0];
  const std::uint64_t low = static_cast<std::uint64_t>(x[3]) << 32 | x[2];
  const double radius_uniform = (static_cast<double>(high >> 11) + 0.5) * 0x1p-53;  // never 0
  const double angle_uniform = static_cast<double>(low >> 11) * 0x1p-53;
  return std::sqrt(-2.0 * std::log(radius_uniform)) * std::cos(2.0 * std::numbers::pi * angle_uniform);
}

}  // namespace nearwise
