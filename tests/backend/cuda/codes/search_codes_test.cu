// The kernel search_codes on arbitrary tables against plain loops.
#include "backend/cuda/kernels/codes/search_codes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/cuda/cuda_test.h"
#include "core/math/random.h"
#include "support/device_array.h"

namespace nearwise {
namespace {

using support::DeviceArray;

constexpr std::size_t codebook_size = 256;

std::vector<std::int16_t> entries(std::uint64_t seed, std::size_t count, int range) {
  const Random random(seed);
  std::vector<std::int16_t> out(count);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<std::int16_t>(
        static_cast<int>(random.below(i, 2 * static_cast<std::uint64_t>(range) + 1)) - range);
  return out;
}

// Codebook by codebook the smallest sum of entries, with saturating additions in order.
std::vector<std::uint8_t> start_of(const std::vector<std::int16_t>& own,
                                   const std::vector<std::int16_t>& pairs, std::size_t rows,
                                   std::size_t books) {
  std::vector<std::uint8_t> codes(rows * books);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t book = 0; book < books; ++book) {
      int least = 100'000;
      for (std::size_t word = 0; word < codebook_size; ++word) {
        int sum = own[(row * books + book) * codebook_size + word];
        for (std::size_t other = 0; other < book; ++other) {
          const std::size_t table = book * (books - 1) + other;
          sum += pairs[(table * codebook_size + codes[row * books + other]) * codebook_size + word];
          sum = std::clamp(sum, -32768, 32767);
        }
        if (sum >= least) continue;
        least = sum;
        codes[row * books + book] = static_cast<std::uint8_t>(word);
      }
    }
  return codes;
}

class CudaSearchCodes : public gpu::CudaTest, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Ranges, CudaSearchCodes, testing::Values(0, 1, 1000, 20'000, 32'767));

// Few distinct values give many ties, the largest ones saturate.
TEST_P(CudaSearchCodes, StartsWithTheLeastSumAndTheLowerNumberInATie) {
  constexpr std::size_t rows = 9;
  constexpr std::uint32_t width = 16;
  for (const std::size_t books : {1UL, 2UL, 5UL}) {
    const std::vector<std::int16_t> own = entries(books, rows * books * codebook_size, GetParam());
    const std::vector<std::int16_t> pairs =
        entries(books + 10, std::max<std::size_t>(1, books * (books - 1) * codebook_size * codebook_size),
                GetParam());
    const DeviceArray<std::int16_t> device_own(own), device_pairs(pairs);
    const DeviceArray<float> values(std::vector<float>(rows * width, 0.0F));
    const DeviceArray<float> codewords(std::vector<float>(books * codebook_size * width, 0.0F));
    const DeviceArray<std::uint64_t> keys(std::vector<std::uint64_t>(rows, 0));
    DeviceArray<std::uint8_t> codes(std::vector<std::uint8_t>(rows * books, 77));
    gpu::launch_search_codes(nullptr, {.own = device_own.data(),
                                       .pairs = device_pairs.data(),
                                       .values = values.data(),
                                       .codewords = codewords.data(),
                                       .keys = keys.data(),
                                       .count = rows,
                                       .books = static_cast<std::uint32_t>(books),
                                       .width = width,
                                       .rounds = 1,
                                       .starts = true,
                                       .codes = codes.data()});
    EXPECT_EQ(codes.to_host(), start_of(own, pairs, rows, books)) << books << " codebooks";
  }
}

}  // namespace
}  // namespace nearwise
