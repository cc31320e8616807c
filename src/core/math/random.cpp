#include "core/math/random.h"

#include <cmath>

#include "core/math/elementary.h"

namespace nearwise {
namespace {

__extension__ using Wide = unsigned __int128;

}  // namespace

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
  return std::sqrt(-2 * natural_logarithm(radius_uniform)) * cosine_of_turns(angle_uniform);
}

}  // namespace nearwise
