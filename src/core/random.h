// Counter-based random numbers: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3").
//
// A number is a pure function of (seed, stream, index), so any thread may compute any of them in any order and
// the same seed gives the same values everywhere. There is no hidden state and no global generator.
#pragma once

#include <array>
#include <cstdint>

namespace nearwise {

using PhiloxBlock = std::array<std::uint32_t, 4>;

// The raw function: ten rounds over a 128-bit counter under a 64-bit key.
PhiloxBlock philox(const PhiloxBlock& counter, std::array<std::uint32_t, 2> key) noexcept;

class Random {
 public:
  // `stream` separates uses that share a seed (an iteration, a purpose).
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  std::uint64_t bits(std::uint64_t index) const noexcept;
  // Uniform in [0, bound), without bias towards small values beyond 2^-64 * bound. bound > 0.
  std::uint64_t below(std::uint64_t index, std::uint64_t bound) const noexcept;
  // Uniform in [0, 1), 53 random bits.
  double uniform(std::uint64_t index) const noexcept;
  // Standard normal (Box-Muller).
  double normal(std::uint64_t index) const noexcept;

 private:
  PhiloxBlock block(std::uint64_t index) const noexcept;
  std::uint64_t seed_;
  std::uint64_t stream_;
};

}  // namespace nearwise
