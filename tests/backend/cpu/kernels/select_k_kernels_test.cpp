// Kernels of selection on every compiled instruction set against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/selection_key.h"
#include "core/math/random.h"

namespace nearwise::cpu {
namespace {

constexpr std::int64_t untouched = 0x5555555555555555;
constexpr float infinity = std::numeric_limits<float>::infinity();

// Numbers with many ties, zeros of either sign, infinities and NaNs.
std::vector<float> mixed_values(std::size_t count) {
  const Random random(count);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const float choices[] = {0.0F, -0.0F, infinity, -infinity, 1e-45F, NAN, 1.5F};
    const std::uint64_t dice = random.below(i, 20);
    values[i] = dice < 7 ? choices[dice] : static_cast<float>(random.normal(i));
  }
  return values;
}

std::int64_t plain_key(float value, std::size_t position, Order order) {
  const std::int32_t image = std::isnan(value) ? nan_image : image_of_number(value, order);
  return make_key(image, static_cast<std::uint32_t>(position));
}

class SelectKKernelsTest : public testing::TestWithParam<int> {
 protected:
  const SelectKKernels& kernels() const {
    return select_k_kernels(available_instruction_sets()[static_cast<std::size_t>(GetParam())]);
  }
};

INSTANTIATE_TEST_SUITE_P(InstructionSet, SelectKKernelsTest,
                         testing::Range(0, static_cast<int>(available_instruction_sets().size())));

// The contract of threshold_of for every kind of limit. Would catch: a zero that passes but must not.
TEST(SelectionKey, ThresholdsPassWhatTheirImagesDo) {
  const std::vector<float> values = {-infinity, -2, -1e-45F, -0.0F, 0.0F, 1e-45F, 2, infinity};
  for (const Order order : {Order::smallest, Order::largest})
    for (const float limit_value : values)
      for (const std::int32_t offset : {-2, -1, 0, 1, 2}) {
        const std::int32_t limit = image_of_number(limit_value, order) + offset;
        const float threshold = threshold_of(limit, order);
        for (const float value : values)
          EXPECT_EQ(order == Order::smallest ? value <= threshold : value >= threshold,
                    image_of_number(value, order) <= limit)
              << value << " against the image of " << limit_value << " + " << offset;
      }
}

// Would catch: a lost or duplicate value in any mask, a key out of order, a write beyond select_overrun.
TEST_P(SelectKKernelsTest, ScanAppendsWhatPassesUntilThereIsNoRoom) {
  for (const std::size_t count : {1, 63, 64, 65, 2047, 2048, 2049, 5000}) {
    const std::vector<float> values = mixed_values(count);
    for (const float threshold : {-infinity, -1.0F, 0.0F, 0.5F, infinity, NAN})
      for (const SelectTest test : {SelectTest::at_most, SelectTest::at_least, SelectTest::not_a_number}) {
        const Order order = test == SelectTest::at_least ? Order::largest : Order::smallest;
        const std::size_t begin = count / 7;
        std::vector<std::int64_t> expected = {-1, -2};  // earlier keys
        for (std::size_t i = begin; i < count; ++i) {
          const float x = values[i];
          const bool passes = test == SelectTest::at_most    ? x <= threshold
                              : test == SelectTest::at_least ? x >= threshold
                                                             : std::isnan(x);
          if (passes) expected.push_back(plain_key(x, i, order));
        }
        for (const std::size_t capacity : {expected.size(), expected.size() / 2 + 2}) {
          std::vector<std::int64_t> keys(capacity + select_overrun + 8, untouched);
          keys[0] = -1, keys[1] = -2;
          const SelectScanEnd end = kernels().scan[static_cast<std::size_t>(test)]({.row = values.data(),
                                                                                    .begin = begin,
                                                                                    .end = count,
                                                                                    .threshold = threshold,
                                                                                    .keys = keys.data(),
                                                                                    .count = 2,
                                                                                    .capacity = capacity});
          ASSERT_LE(end.count, capacity);
          EXPECT_TRUE(std::equal(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(end.count),
                                 expected.begin()));
          EXPECT_TRUE(std::all_of(keys.end() - 8, keys.end(), [](auto key) { return key == untouched; }));
          if (end.next == count)
            EXPECT_EQ(end.count, expected.size()) << count;
          else
            EXPECT_LT(capacity, expected.size());
        }
      }
  }
}

TEST_P(SelectKKernelsTest, EncodeWritesTheKeyOfEveryValue) {
  for (const std::size_t count : {1, 3, 7, 8, 9, 17, 200}) {
    const std::vector<float> values = mixed_values(count);
    for (const Order order : {Order::smallest, Order::largest}) {
      std::vector<std::int64_t> keys(count + 1, untouched);
      kernels().encode(values.data(), 0, count / 3, order, keys.data());
      kernels().encode(values.data(), count / 3, count, order, keys.data());
      for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(keys[i], plain_key(values[i], i, order)) << i;
      EXPECT_EQ(keys[count], untouched);
    }
  }
}

TEST_P(SelectKKernelsTest, KeysAreCountedAndKeptInTheirOrder) {
  const Random random(3);
  for (const std::size_t count : {0, 1, 7, 8, 9, 31, 100}) {
    std::vector<std::int64_t> keys(count);
    for (std::size_t i = 0; i < count; ++i) keys[i] = static_cast<std::int64_t>(random.bits(i));
    for (const std::int64_t limit :
         {std::numeric_limits<std::int64_t>::min(), std::int64_t{0},
          count == 0 ? std::int64_t{5} : keys[count / 2], std::numeric_limits<std::int64_t>::max()}) {
      std::vector<std::int64_t> expected;
      std::copy_if(keys.begin(), keys.end(), std::back_inserter(expected),
                   [&](std::int64_t key) { return key <= limit; });
      EXPECT_EQ(kernels().count_keys(keys.data(), count, limit), expected.size());
      std::vector<std::int64_t> kept = keys;
      kept.resize(kernels().keep_keys(kept.data(), count, limit));
      EXPECT_EQ(kept, expected);
    }
  }
}

// Samples in pieces and of whole rows, and the minimum of every group.
TEST_P(SelectKKernelsTest, SampleImagesAndGroups) {
  const std::vector<float> values = mixed_values(1000);
  for (const std::size_t length : {1, 15, 16, 64, 100})
    for (const std::size_t groups : {0, 64, 128}) {
      const std::size_t chunks = 5;
      std::vector<std::int32_t> plain;
      for (std::size_t chunk = 0; chunk < chunks; ++chunk)
        for (std::size_t i = 0; i < length; ++i)
          plain.push_back(image_of_key(plain_key(values[chunk * 200 + i], 0, Order::largest)));
      while (plain.size() % sample_granule != 0) plain.push_back(nan_image);
      std::vector<std::int32_t> expected = plain;
      if (groups != 0 && groups < plain.size()) {
        expected.assign(groups, nan_image);
        for (std::size_t i = 0; i < plain.size(); ++i)
          expected[i % groups] = std::min(expected[i % groups], plain[i]);
      }
      std::vector<std::int32_t> images(plain.size() + 64);
      const ImageRange range = kernels().sample({.row = values.data(),
                                                 .length = length,
                                                 .chunks = chunks,
                                                 .stride = 200,
                                                 .order = Order::largest,
                                                 .groups = groups,
                                                 .images = images.data()});
      images.resize(expected.size());
      EXPECT_EQ(images, expected) << length << " " << groups;
      EXPECT_EQ(range.lowest, *std::min_element(expected.begin(), expected.end()));
      EXPECT_EQ(range.highest, *std::max_element(expected.begin(), expected.end()));
      const std::int32_t limit = expected[0] == nan_image ? 0 : expected[0];
      EXPECT_EQ(kernels().count_images(images.data(), images.size(), limit),
                static_cast<std::size_t>(std::count_if(expected.begin(), expected.end(),
                                                       [&](std::int32_t image) { return image <= limit; })));
    }
}

}  // namespace
}  // namespace nearwise::cpu
