// When rows are scanned coarsely.
#include "backend/cpu/exact/coarse_choice.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace nearwise::cpu {
namespace {

ScanKernel kernel_of(Encoding encoding, std::size_t base_unit_bytes) {
  ScanKernel kernel;
  kernel.base_encoding = encoding;
  kernel.base_unit_bytes = base_unit_bytes;
  return kernel;
}

TEST(CoarseChoice, FewRowsAreScannedInF32) {
  const ScanKernel dots = kernel_of(Encoding::scaled_byte, 4);
  EXPECT_EQ(CoarseChoice::min_rows(dots, 10), 3840U);
  EXPECT_EQ(CoarseChoice::min_rows(dots, 64), 64 * 384U);
  // Below three neighbours the scan itself decides.
  EXPECT_EQ(CoarseChoice::min_rows(dots, 1), CoarseChoice::min_rows(dots, 3));
  // Tiles save less per pair, so that it takes more pairs to pay for an evaluation.
  EXPECT_EQ(CoarseChoice::min_rows(kernel_of(Encoding::scaled_byte, 64), 10), 8 * 3840U);
  // bf16 and f32 have no second form to choose.
  EXPECT_EQ(CoarseChoice::min_rows(kernel_of(Encoding::bf16, 64), 10), 0U);
  EXPECT_EQ(CoarseChoice::min_rows(kernel_of(Encoding::f32, 4), 10), 0U);
}

TEST(CoarseChoice, TooManyOpenRowsAreScannedMorePrecisely) {
  constexpr std::size_t queries = 100;
  CoarseChoice choice(kernel_of(Encoding::scaled_byte, 4), queries, 20, 1'000'000, true);
  EXPECT_EQ(choice.take_close_rows(), 0U);
  choice.add(10'000, 10'000);  // one pair in 100: worth it
  EXPECT_EQ(choice.take_close_rows(), 0U);
  choice.add(10'000, 200'000);  // one in ten
  const std::size_t first = choice.take_close_rows();
  EXPECT_GT(first, 0U);
  EXPECT_FALSE(choice.wants_f32());
  choice.add(10'000, 200'000);  // and again: a longer stretch
  EXPECT_GT(choice.take_close_rows(), first);
  choice.add_close(first, queries * first);
  EXPECT_TRUE(choice.wants_f32());
}

TEST(CoarseChoice, WithoutLimitsTheFirstRowsAreScannedMorePrecisely) {
  const ScanKernel dots = kernel_of(Encoding::scaled_byte, 4);
  EXPECT_GT(CoarseChoice(dots, 100, 20, 1'000'000, false).take_close_rows(), 0U);
  EXPECT_LE(CoarseChoice(dots, 100, 20, 1000, false).take_close_rows(), 250U);
  EXPECT_EQ(CoarseChoice(kernel_of(Encoding::bf16, 4), 100, 20, 1'000'000, false).take_close_rows(), 0U);
}

}  // namespace
}  // namespace nearwise::cpu
