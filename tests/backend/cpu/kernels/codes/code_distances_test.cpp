// Integer distances between codes on every instruction set.
#include "backend/cpu/kernels/codes/code_distances.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/math/random.h"
#include "core/memory.h"

namespace nearwise::cpu {
namespace {

constexpr std::size_t rows = 37;

// Bytes aligned as the library's buffers are.
struct Codes {
  MemoryBudget budget;
  Buffer<std::uint8_t> codes;
  Buffer<std::int16_t> query;
  std::vector<std::uint32_t> order;

  Codes(std::size_t row_bytes, std::size_t query_size, int lowest, int highest)
      : codes(budget, rows * row_bytes), query(budget, query_size) {
    const Random random(11);
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(random.below(i, 256));
    const Random other(12);
    for (std::size_t i = 0; i < query.size(); ++i)
      query[i] = static_cast<std::int16_t>(
          lowest + static_cast<int>(other.below(i, static_cast<std::uint64_t>(highest - lowest + 1))));
    for (std::size_t i = 0; i < rows; ++i) order.push_back(static_cast<std::uint32_t>(i * 7 % rows));
  }
};

TEST(CodeDistances, BytesAreSumsOfSquaredDifferences) {
  for (const InstructionSet set : available_instruction_sets())
    for (const std::size_t row_bytes : {64UL, 128UL, 832UL})
      for (const std::size_t count : {1UL, 3UL, 4UL, rows}) {
        Codes given(row_bytes, row_bytes, -255, 510);
        std::vector<std::int32_t> distances(count + code_overrun);
        code_distance_kernels(set).bytes({.query = given.query.data(),
                                          .codes = given.codes.data(),
                                          .row_bytes = row_bytes,
                                          .rows = given.order.data(),
                                          .count = count,
                                          .distances = distances.data()});
        for (std::size_t i = 0; i < count; ++i) {
          std::int64_t expected = 0;
          for (std::size_t j = 0; j < row_bytes; ++j) {
            const int difference = given.codes[given.order[i] * row_bytes + j] - given.query[j];
            expected += difference * difference;
          }
          ASSERT_EQ(distances[i], expected) << name(set) << " " << row_bytes << " " << i;
        }
      }
}

TEST(CodeDistances, TheLargestSumsDoNotOverflow) {
  constexpr std::size_t row_bytes = 8192;
  for (const InstructionSet set : available_instruction_sets()) {
    MemoryBudget budget;
    Buffer<std::uint8_t> codes(budget, row_bytes);
    Buffer<std::int16_t> query(budget, row_bytes);
    std::fill_n(codes.data(), row_bytes, std::uint8_t{0});
    std::fill_n(query.data(), row_bytes, std::int16_t{510});
    const std::uint32_t row = 0;
    std::vector<std::int32_t> distance(1 + code_overrun);
    code_distance_kernels(set).bytes({.query = query.data(),
                                      .codes = codes.data(),
                                      .row_bytes = row_bytes,
                                      .rows = &row,
                                      .count = 1,
                                      .distances = distance.data()});
    EXPECT_EQ(distance[0], 510 * 510 * 8192) << name(set);
  }
}

TEST(CodeDistances, NibblesCountSixteenfold) {
  for (const InstructionSet set : available_instruction_sets())
    for (const std::size_t blocks : {1UL, 3UL}) {
      const std::size_t row_bytes = blocks * 64;
      Codes given(row_bytes, blocks * 128, -240, 480);
      std::vector<std::int32_t> distances(rows + code_overrun);
      code_distance_kernels(set).nibbles({.query = given.query.data(),
                                          .codes = given.codes.data(),
                                          .row_bytes = row_bytes,
                                          .rows = given.order.data(),
                                          .count = rows,
                                          .distances = distances.data()});
      for (std::size_t i = 0; i < rows; ++i) {
        const std::uint8_t* const row = given.codes.data() + given.order[i] * row_bytes;
        std::int64_t expected = 0;
        for (std::size_t d = 0; d < blocks * 128; ++d) {
          const std::size_t word = d / 128 * 32 + d % 32;
          const unsigned bits = row[2 * word] | static_cast<unsigned>(row[2 * word + 1]) << 8;
          const int code = static_cast<int>(bits >> (d % 128 / 32 * 4) & 15U);
          const int difference = 16 * code - given.query[d];
          expected += difference * difference;
        }
        ASSERT_EQ(distances[i], expected) << name(set) << " " << i;
      }
    }
}

TEST(CodeDistances, WidenedRowsAreQueries) {
  for (const InstructionSet set : available_instruction_sets()) {
    Codes given(128, 128, 0, 1);
    code_distance_kernels(set).widen(given.codes.data(), 128, given.query.data());
    for (std::size_t i = 0; i < 128; ++i) ASSERT_EQ(given.query[i], given.codes[i]) << name(set);
  }
}

TEST(CodeDistances, UnseenRowsAreMarkedAndKeepTheirOrder) {
  constexpr std::size_t degree = 48;
  const Codes given(64, 64, 0, 1);
  for (const InstructionSet set : available_instruction_sets()) {
    std::vector<std::int32_t> list(degree, -1);
    for (std::size_t i = 0; i < 36; ++i) list[i] = static_cast<std::int32_t>(i * 5 % rows);
    std::vector<std::uint32_t> seen(2, 0);
    std::vector<std::uint32_t> expected;
    for (const std::uint32_t row : {3U, 31U, 32U, 36U}) seen[row / 32] |= 1U << row % 32;
    for (const std::int32_t row : list)
      if (row >= 0 && (seen[static_cast<std::size_t>(row) / 32] >> row % 32 & 1U) == 0)
        expected.push_back(static_cast<std::uint32_t>(row));
    std::vector<std::uint32_t> found(degree + code_overrun);
    const UnseenArgs args = {.list = list.data(),
                             .degree = degree,
                             .seen = seen.data(),
                             .codes = given.codes.data(),
                             .row_bytes = 64,
                             .rows = found.data()};
    ASSERT_EQ(code_distance_kernels(set).unseen(args), expected.size()) << name(set);
    found.resize(expected.size());
    EXPECT_EQ(found, expected) << name(set);
    // All of them have been seen now.
    found.resize(degree + code_overrun);
    EXPECT_EQ(code_distance_kernels(set).unseen(args), 0U) << name(set);
  }
}

}  // namespace
}  // namespace nearwise::cpu
