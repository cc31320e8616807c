// Selection on the device against the oracle: every warp queue length, radix selection, split rows.
//
// Catches queue overflow, a missing final merge, a lost remainder, wrong thresholds, ties not broken by id,
// NaNs taken for numbers, overlapping or missing parts, entries lost between levels.
#include "backend/cuda/rows/row_selection.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "backend/cuda/cuda_test.h"
#include "backend/cuda/device_selection.h"

namespace nearwise {
namespace {

using gpu::Ties;
using support::both_orders;
using support::DeviceSelection;
using support::every_row_kind;
using support::every_ties;
using support::RowKind;

class RowSelection : public gpu::CudaTest, public testing::WithParamInterface<RowKind> {
 protected:
  void SetUp() override {
    gpu::CudaTest::SetUp();
    if (!gpu::is_due(static_cast<std::uint64_t>(GetParam()))) GTEST_SKIP() << "another schedule has it";
  }
};

INSTANTIATE_TEST_SUITE_P(Kind, RowSelection, testing::ValuesIn(every_row_kind),
                         [](const auto& instance) { return std::string(support::name(instance.param)); });

// Kinds of rows alternate tie-breaks and orders, so that every combination is tested.
Ties some_ties(RowKind kind, std::size_t number) {
  return every_ties[(static_cast<std::size_t>(kind) + number) % 3];
}
Order some_order(RowKind kind, std::size_t number) {
  return both_orders[(static_cast<std::size_t>(kind) / 3 + number) % 2];
}

// Five rows: more than a block's warps, and the last block is partly filled.
TEST_P(RowSelection, EveryCapacity) {
  std::size_t number = 0;
  for (const std::size_t capacity : {32, 64, 128, 256, 512, 1024}) {
    const Ties ties = some_ties(GetParam(), number);
    const Order order = some_order(GetParam(), number);
    DeviceSelection{GetParam(), 5, 2 * capacity + 255 + number, capacity, ties, order}.expect_oracle();
    DeviceSelection{GetParam(), 2, capacity, capacity - 5 - number, ties, order}.expect_oracle();
    ++number;
  }
}

// By reduction. With this many rows, some have the best two in one lane.
TEST_P(RowSelection, TheBestTwo) {
  for (const Ties ties : every_ties)
    for (const std::size_t k : {1, 2})
      DeviceSelection{GetParam(), 300, 70, k, ties, some_order(GetParam(), k)}.expect_oracle();
}

TEST_P(RowSelection, EveryTail) {
  std::size_t number = 0;
  for (const std::size_t cols : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 255, 256, 257})
    for (const std::size_t k : {std::size_t{1}, (cols + 1) / 2, cols}) {
      DeviceSelection{GetParam(), 1, cols, k, every_ties[number % 3], both_orders[number / 3 % 2]}
          .expect_oracle();
      ++number;
    }
}

TEST_P(RowSelection, LargerThanRegisters) {
  for (const std::size_t number : {0, 1})
    DeviceSelection{GetParam(),
                    2,
                    2000 + number,
                    1025 + 7 * number,
                    some_ties(GetParam(), number),
                    some_order(GetParam(), number)}
        .expect_oracle();
  // All columns, and more than one sorted run: three runs, an odd number.
  DeviceSelection{GetParam(), 1, 4500, 4500, some_ties(GetParam(), 2), Order::smallest}.expect_oracle();
}

TEST_P(RowSelection, CutIntoParts) {
  // Several levels: 60 parts, then a few, then one.
  const gpu::tuning::RowSplit many = {.target_parts = 120, .min_columns = 50, .columns_per_entry = 2};
  for (const std::size_t number : {0, 1, 2})
    DeviceSelection{GetParam(),
                    2,
                    3001 + number,
                    20 + number,
                    some_ties(GetParam(), number),
                    some_order(GetParam(), number),
                    many}
        .expect_oracle();
  // Radix selection from two parts, and from their output.
  const gpu::tuning::RowSplit two = {.target_parts = 9, .min_columns = 1, .columns_per_entry = 2};
  DeviceSelection{GetParam(), 1, 5000, 1200, some_ties(GetParam(), 0), Order::smallest, two}.expect_oracle();
}

}  // namespace
}  // namespace nearwise
