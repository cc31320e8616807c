// Kernels of additive encoding on every instruction set against plain loops.
#include "backend/cpu/kernels/codes/additive_codes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/math/random.h"

namespace nearwise::cpu {
namespace {

std::vector<float> random_floats(std::uint64_t seed, std::size_t count) {
  const Random random(seed);
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(random.normal(i));
  return out;
}

std::int16_t rounded(float value) {
  return static_cast<std::int16_t>(std::nearbyint(std::clamp(value, -32767.0F, 32767.0F)));
}

// Bit for bit: one sum per entry, in the order of the elements. Some entries exceed the 16-bit range.
TEST(AdditiveKernels, ScaledProducts) {
  for (const std::size_t dim : {1UL, 7UL, 16UL, 33UL})
    for (const std::size_t count : {1UL, 3UL, 4UL, 9UL}) {
      const std::size_t stride = dim + 3;
      const std::vector<float> rows = random_floats(1, count * stride);
      const std::vector<float> columns = random_floats(2, dim * additive_codebook_size);
      const std::vector<float> start = random_floats(3, additive_codebook_size);
      const float scale = 12000;
      std::vector<std::int16_t> expected;
      for (std::size_t row = 0; row < count; ++row)
        for (std::size_t codeword = 0; codeword < additive_codebook_size; ++codeword) {
          float sum = 0;
          for (std::size_t i = 0; i < dim; ++i) {
            const float product = rows[row * stride + i] * columns[i * additive_codebook_size + codeword];
            sum += product;
          }
          const float product = -2.0F * sum;
          expected.push_back(rounded((start[codeword] + product) * scale));
        }
      for (const InstructionSet set : available_instruction_sets()) {
        std::vector<std::int16_t> out(count * additive_codebook_size, 1);
        additive_kernels(set).scaled_products({.rows = rows.data(),
                                               .stride = stride,
                                               .count = count,
                                               .dim = dim,
                                               .columns = columns.data(),
                                               .start = start.data(),
                                               .factor = -2,
                                               .scale = scale,
                                               .out = out.data()});
        EXPECT_EQ(out, expected) << name(set) << " dim " << dim << " rows " << count;
      }
    }
}

// range: of the entries. Small ranges cause ties, the largest saturates.
void expect_modes(int range, std::size_t codebooks, std::size_t code) {
  constexpr std::size_t count = 21;
  const Random random(static_cast<std::uint64_t>(range) + codebooks * 7 + code);
  std::uint64_t draws = 0;
  const auto draw = [&](int bound) {
    return static_cast<int>(random.below(draws++, static_cast<std::uint64_t>(bound)));
  };
  const auto entries = [&](std::size_t size) {
    std::vector<std::int16_t> out(size);
    for (std::int16_t& entry : out) entry = static_cast<std::int16_t>(draw(2 * range + 1) - range);
    return out;
  };
  const std::vector<std::int16_t> own = entries(count * additive_codebook_size);
  std::vector<std::vector<std::int16_t>> tables;
  std::vector<const std::int16_t*> pointers;
  std::vector<std::size_t> others;
  for (std::size_t other = 0; other < codebooks; ++other) {
    if (other == code) continue;
    others.push_back(other);
    tables.push_back(entries(additive_codebook_size * additive_codebook_size));
    pointers.push_back(tables.back().data());
  }
  std::vector<std::uint8_t> codes(count * codebooks);
  for (std::uint8_t& byte : codes) byte = static_cast<std::uint8_t>(draw(256));
  std::vector<std::uint32_t> settled(count);
  for (std::size_t row = 0; row < count; ++row) settled[row] = row % 3 == 0 ? 1U << code : 1U << 31;

  std::vector<std::uint8_t> expected = codes;
  std::vector<std::uint32_t> expected_settled = settled;
  for (std::size_t row = 0; row < count; ++row) {
    if (row % 3 == 0) continue;
    int least = 100'000;
    std::size_t best = 0;
    for (std::size_t codeword = 0; codeword < additive_codebook_size; ++codeword) {
      int sum = own[row * additive_codebook_size + codeword];
      for (std::size_t i = 0; i < others.size(); ++i)
        sum = std::clamp(
            sum + tables[i][codes[row * codebooks + others[i]] * additive_codebook_size + codeword], -32768,
            32767);
      if (sum < least) {
        least = sum;
        best = codeword;
      }
    }
    const bool changed = expected[row * codebooks + code] != best;
    expected[row * codebooks + code] = static_cast<std::uint8_t>(best);
    expected_settled[row] = changed ? 1U << code : settled[row] | 1U << code;
  }
  for (const InstructionSet set : available_instruction_sets()) {
    std::vector<std::uint8_t> given = codes;
    std::vector<std::uint32_t> given_settled = settled;
    const std::size_t chosen = additive_kernels(set).conditional_modes({.own = own.data(),
                                                                        .codes = given.data(),
                                                                        .stride = codebooks,
                                                                        .count = count,
                                                                        .code = code,
                                                                        .others = others.data(),
                                                                        .tables = pointers.data(),
                                                                        .other_count = others.size(),
                                                                        .settled = given_settled.data()});
    EXPECT_EQ(chosen, count - count / 3) << name(set);
    EXPECT_EQ(given, expected) << name(set) << " range " << range << " codebooks " << codebooks;
    EXPECT_EQ(given_settled, expected_settled) << name(set);
  }
}

TEST(AdditiveKernels, TheLeastSumAndTheLowerNumberInATie) {
  for (const int range : {0, 1, 3, 1000, 32767})
    for (const std::size_t codebooks : {1UL, 2UL, 5UL}) {
      expect_modes(range, codebooks, 0);
      expect_modes(range, codebooks, codebooks - 1);
    }
}

// Bit for bit: 16 lanes, reduced by halves.
TEST(AdditiveKernels, Costs) {
  for (const std::size_t width : {16UL, 48UL})
    for (const std::size_t codebooks : {1UL, 3UL}) {
      constexpr std::size_t count = 5;
      const std::vector<float> rows = random_floats(4, count * width);
      const std::vector<float> codewords = random_floats(5, codebooks * additive_codebook_size * width);
      const Random random(6);
      std::vector<std::uint8_t> codes(count * codebooks);
      for (std::size_t i = 0; i < codes.size(); ++i)
        codes[i] = static_cast<std::uint8_t>(random.below(i, 256));
      std::vector<float> expected;
      for (std::size_t row = 0; row < count; ++row) {
        float lanes[cost_lanes] = {};
        for (std::size_t i = 0; i < width; ++i) {
          float difference = rows[row * width + i];
          for (std::size_t book = 0; book < codebooks; ++book)
            difference -=
                codewords[(book * additive_codebook_size + codes[row * codebooks + book]) * width + i];
          const float square = difference * difference;
          lanes[i % cost_lanes] += square;
        }
        for (const std::size_t half : {8UL, 4UL, 2UL, 1UL})
          for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
        expected.push_back(lanes[0]);
      }
      for (const InstructionSet set : available_instruction_sets()) {
        std::vector<float> costs(count);
        additive_kernels(set).costs({.rows = rows.data(),
                                     .count = count,
                                     .width = width,
                                     .codewords = codewords.data(),
                                     .codebooks = codebooks,
                                     .codes = codes.data(),
                                     .costs = costs.data()});
        EXPECT_EQ(costs, expected) << name(set);
      }
    }
}

}  // namespace
}  // namespace nearwise::cpu
