// The kernel scan_codes: sums of table entries, whichever pairs share a block and its tables.
#include "backend/cuda/kernels/lists/scan_lists.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/cuda/cuda_test.h"
#include "core/math/random.h"
#include "support/device_array.h"

namespace nearwise {
namespace {

using gpu::ScanPair;
using support::DeviceArray;

constexpr std::uint32_t rows_of_tile = 224;
constexpr std::size_t queries = 3;
constexpr std::size_t columns = 230;
constexpr float untouched = -1;

// Lists of one row, of several groups and of most of the tile; queries with one or several lists.
const std::vector<ScanPair> pairs = {
    {.query = 0, .column = 0, .first_row = 0, .rows = 1, .list = 0},
    {.query = 0, .column = 1, .first_row = 32, .rows = 130, .list = 1},
    {.query = 1, .column = 0, .first_row = 32, .rows = 130, .list = 1},
    {.query = 2, .column = 0, .first_row = 0, .rows = 1, .list = 0},
    {.query = 2, .column = 1, .first_row = 192, .rows = 32, .list = 2},
};

class CudaScanLists : public gpu::CudaTest, public testing::WithParamInterface<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(PairsPerBlock, CudaScanLists, testing::Values(1U, 2U, 3U, 16U));

TEST_P(CudaScanLists, AddsUpTables) {
  for (const unsigned bits : {4U, 8U})
    // With all tables in shared memory, and with more.
    for (const std::uint32_t parts : {1U, 5U, bits == 8 ? 35U : 260U}) {
      const Random random(parts, bits);
      const std::size_t entries = std::size_t{parts} << bits;
      std::vector<float> tables(queries * entries), offsets(pairs.size()), half_norms(rows_of_tile);
      for (std::size_t i = 0; i < tables.size(); ++i) tables[i] = static_cast<float>(random.normal(i));
      for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] = static_cast<float>(i);
      for (std::size_t i = 0; i < half_norms.size(); ++i)
        half_norms[i] = static_cast<float>(random.uniform(i));
      const std::uint32_t per_word = 32 / bits;
      const std::uint32_t words = (parts + per_word - 1) / per_word;
      std::vector<std::uint32_t> codes(std::size_t{rows_of_tile} * words);
      const auto place = [&](std::size_t row, std::size_t word) {
        return (row / 32 * words + word) * 32 + row % 32;
      };
      const auto code = [&](std::size_t row, std::size_t part) {
        return static_cast<std::uint32_t>(random.below(row * parts + part, std::uint64_t{1} << bits));
      };
      for (std::size_t row = 0; row < rows_of_tile; ++row)
        for (std::uint32_t part = 0; part < parts; ++part)
          codes[place(row, part / per_word)] |= code(row, part) << (part % per_word * bits);

      std::vector<float> expected(queries * columns, untouched);
      for (std::size_t i = 0; i < pairs.size(); ++i)
        for (std::size_t row = 0; row < pairs[i].rows; ++row) {
          float sum = 0;
          for (std::uint32_t part = 0; part < parts; ++part)
            sum += tables[pairs[i].query * entries + (std::size_t{part} << bits) +
                          code(pairs[i].first_row + row, part)];
          expected[pairs[i].query * columns + pairs[i].column + row] =
              half_norms[pairs[i].first_row + row] + (offsets[i] + sum);
        }

      DeviceArray<ScanPair> device_pairs(pairs);
      DeviceArray<std::uint32_t> device_codes(codes);
      DeviceArray<float> device_squares(half_norms), device_tables(tables), device_offsets(offsets);
      DeviceArray<float> scores(std::vector<float>(queries * columns, untouched));
      gpu::launch_scan_codes(nullptr,
                             {.pairs = device_pairs.data(),
                              .count = pairs.size(),
                              .max_rows = 130,
                              .scores = scores.data(),
                              .columns = columns},
                             {.codes = device_codes.data(),
                              .half_norms = device_squares.data(),
                              .tables = device_tables.data(),
                              .offsets = device_offsets.data(),
                              .parts = parts,
                              .words_per_code = words,
                              .bits = bits,
                              .pairs_per_block = GetParam()});
      EXPECT_EQ(scores.to_host(), expected) << parts << " parts of " << bits << " bits";
    }
}

}  // namespace
}  // namespace nearwise
