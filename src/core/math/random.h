// Counter-based random numbers: Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2,
// 3").
//
// A number is a pure function of (seed, stream, index), so any thread may compute any of them in any order
// and the same seed gives the same values everywhere. There is no hidden state and no global generator.
#pragma once

#include <array>
#include <cstdint>

namespace nearwise {

using PhiloxBlock = std::array<std::uint32_t, 4>;

// The raw function: ten rounds over a 128-bit counter under a 64-bit key. Kernels call it too.
constexpr PhiloxBlock philox(const PhiloxBlock& counter, std::array<std::uint32_t, 2> key) noexcept {
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

class Random {
 public:
  // `stream` separates uses that share a seed (an iteration, a purpose).
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  constexpr std::uint64_t bits(std::uint64_t index) const noexcept {
    const PhiloxBlock x = block(index);
    return static_cast<std::uint64_t>(x[1]) << 32 | x[0];
  }
  // Uniform in [0, bound), without bias towards small values beyond 2^-64 * bound. bound > 0.
  std::uint64_t below(std::uint64_t index, std::uint64_t bound) const noexcept;
  // Uniform in [0, 1), 53 random bits.
  double uniform(std::uint64_t index) const noexcept;
  // Standard normal (Box-Muller).
  double normal(std::uint64_t index) const noexcept;

 private:
  constexpr PhiloxBlock block(std::uint64_t index) const noexcept {
    return philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                   static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
                  {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
  }

  std::uint64_t seed_;
  std::uint64_t stream_;
};

}  // namespace nearwise
