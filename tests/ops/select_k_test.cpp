// Selection against the oracle: ids and the bits of values, at every compiled instruction set.
//
// What these would catch: a lost tail or a read beyond a row, a threshold that discards a value it should not
// (ties with it, zeros of either sign, infinities, denormals flushed to zero), a threshold never reached (the
// second scan), a buffer that overflows or is never emptied (descending rows, equal values), ties broken by
// anything but the id, NaNs that are taken for numbers or lost.
#include "nearwise/select_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "nearwise/error.h"
#include "support/float_modes.h"
#include "support/select_cases.h"

namespace nearwise {
namespace {

using support::both_orders;
using support::column_number;
using support::every_instruction_set;
using support::every_row_kind;
using support::RowKind;
using support::same;
using support::ValueRows;

void expect_oracle(MatrixView<const float> values, std::size_t k, Order order) {
  const auto expected = oracle::select_k(values, k, order, column_number);
  const SelectOptions options = {.order = order,
                                 .short_rows = k > values.cols() ? ShortRows::pad : ShortRows::refuse};
  for (const Context& context : every_instruction_set())
    EXPECT_TRUE(same(expected, select_k(context, values, k, options)))
        << context.isa() << (order == Order::smallest ? ", smallest" : ", largest");
}

// 1, 2, all, all but one, half, and more than there are.
std::set<std::size_t> interesting_k(std::size_t columns) {
  std::set<std::size_t> all = {1, 2, columns / 2, columns / 2 + 1, columns - 1, columns, columns + 3};
  all.erase(0);
  return all;
}

class SelectKGenerated : public testing::TestWithParam<RowKind> {};

INSTANTIATE_TEST_SUITE_P(Kind, SelectKGenerated, testing::ValuesIn(every_row_kind),
                         [](const auto& instance) { return std::string(support::name(instance.param)); });

TEST_P(SelectKGenerated, EveryTail) {
  for (const std::size_t columns : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 200})
    for (const std::size_t k : interesting_k(columns))
      for (const Order order : both_orders) {
        SCOPED_TRACE(fmt::format("{} columns, k {}", columns, k));
        expect_oracle(ValueRows(GetParam(), 3, columns, 100 + columns, columns % 4), k, order);
        if (HasFailure()) return;
      }
}

// Around the lengths of a segment and of the largest sample, where the way through a row changes.
TEST_P(SelectKGenerated, EveryWayThroughARow) {
  for (const std::size_t columns : {2047, 2049, 4096, 4097, 6211, 20'001})
    for (const std::size_t k : {1UL, 10UL, 1000UL, columns / 3, columns / 2 - 1})
      for (const Order order : both_orders) {
        SCOPED_TRACE(fmt::format("{} columns, k {}", columns, k));
        expect_oracle(ValueRows(GetParam(), 1, columns, 200 + columns), k, order);
        if (HasFailure()) return;
      }
}

// Ids against the order of columns, with repetitions, so that position and id never agree by chance.
template <typename IdType>
std::vector<IdType> shuffled_ids(std::size_t count, std::uint64_t seed) {
  const Random random = support::random_for(seed, support::Purpose::rows);
  std::vector<IdType> ids(count);
  for (std::size_t i = 0; i < count; ++i)
    ids[i] = static_cast<IdType>(random.bits(i) % (count * 3 / 4 + 1) * (sizeof(IdType) == 4 ? 1000 : 1));
  if constexpr (sizeof(IdType) == 8)  // beyond 32 bits, and negative
    for (std::size_t i = 0; i < count; ++i) ids[i] = (ids[i] - static_cast<Id>(count / 4)) * (Id{1} << 40);
  return ids;
}

template <typename IdType>
void expect_oracle_with_ids(RowKind kind, std::size_t columns, std::size_t k, bool shared) {
  constexpr std::size_t rows = 2;
  const ValueRows values(kind, rows, columns, 300 + columns, 1);
  const std::size_t id_rows = shared ? 1 : rows;
  const std::size_t stride = columns + 3;
  const std::vector<IdType> ids = shuffled_ids<IdType>(id_rows * stride, columns);
  const MatrixView<const IdType> id_view(ids.data(), id_rows, columns, stride);
  for (const Order order : both_orders) {
    const auto expected = oracle::select_k(values, k, order, [&](std::size_t row, std::size_t column) {
      return static_cast<Id>(id_view(shared ? 0 : row, column));
    });
    for (const Context& context : every_instruction_set())
      EXPECT_TRUE(same(expected, select_k(context, values, id_view, k, {.order = order})))
          << context.isa() << ", " << columns << " columns, k " << k << ", ids of " << 8 * sizeof(IdType)
          << " bits" << (shared ? ", shared" : "");
  }
}

TEST_P(SelectKGenerated, IdsOfTheCaller) {
  for (const std::size_t columns : {1, 9, 65, 1000, 9001})
    for (const std::size_t k :
         std::set<std::size_t>{1, std::min<std::size_t>(columns, 100), columns / 3 + 1, columns})
      for (const bool shared : {false, true}) {
        expect_oracle_with_ids<Id>(GetParam(), columns, k, shared);
        expect_oracle_with_ids<std::uint32_t>(GetParam(), columns, k, shared);
        if (HasFailure()) return;
      }
}

// Rows long enough to be cut among threads, rows enough to be shared, and either with ids.
TEST(SelectKThreads, AnyNumberOfThreadsGivesTheSameBytes) {
  struct Shape {
    std::size_t rows, columns, k;
  };
  for (const RowKind kind :
       {RowKind::few_values, RowKind::descending, RowKind::mostly_nan, RowKind::anything})
    for (const auto& [rows, columns, k] :
         {Shape{1, 140'000, 37}, Shape{2, 133'000, 3000}, Shape{30, 3000, 20}}) {
      const ValueRows values(kind, rows, columns, 400 + rows);
      const std::vector<Id> ids = shuffled_ids<Id>(columns, 5);
      const MatrixView<const Id> id_view(ids.data(), 1, columns);
      const auto expected = oracle::select_k(values, k, Order::smallest, column_number);
      const auto expected_with_ids = oracle::select_k(
          values, k, Order::largest, [&](std::size_t, std::size_t column) { return ids[column]; });
      for (const int threads : {1, 2, 3, 4}) {
        SCOPED_TRACE(fmt::format("{}, {} threads, {} rows", support::name(kind), threads, rows));
        const Context context = Context::cpu({.threads = threads});
        EXPECT_TRUE(same(expected, select_k(context, values, k)));
        EXPECT_TRUE(
            same(expected_with_ids, select_k(context, values, id_view, k, {.order = Order::largest})));
        EXPECT_EQ(context.memory_used(), 0U);
      }
    }
}

// Equal values fill the buffer and make the threshold strict; a few that are better by the least possible
// come after. Would catch: a threshold that is too strict by one.
TEST(SelectK, BetterByTheLeastPossible) {
  const std::size_t columns = 20'001;
  for (const float common : {1.0F, -1.0F, 0.0F, -0.0F, std::numeric_limits<float>::infinity()})
    for (const Order order : both_orders) {
      const float sign = order == Order::smallest ? -1.0F : 1.0F;
      std::vector<float> row(columns, order == Order::largest && std::isinf(common) ? -common : common);
      for (const std::size_t column : {15'000, 17'003, 19'999})
        row[column] = std::nextafter(row[column], sign * std::numeric_limits<float>::infinity());
      for (const std::size_t k : {1, 2, 10}) {
        SCOPED_TRACE(fmt::format("{}, k {}", row[0], k));
        expect_oracle({row.data(), 1, columns}, k, order);
      }
    }
}

// More keys than are sorted at once: sorted runs are merged.
TEST(SelectK, MoreThanIsSortedAtOnce) {
  const std::size_t columns = 2'300'000;
  const ValueRows values(RowKind::anything, 1, columns, 7);
  const auto expected = oracle::select_k(values, columns, Order::smallest, column_number);
  const Context context = Context::cpu({.threads = 1});
  for (int repeat = 0; repeat < 2; ++repeat) EXPECT_TRUE(same(expected, select_k(context, values, columns)));
}

// Would catch: comparisons of the calling thread in an environment where denormals are zeros.
TEST(SelectK, CallersThatFlushDenormals) {
  const ValueRows values(RowKind::denormals, 3, 5000, 8);
  const auto expected = oracle::select_k(values, 700, Order::smallest, column_number);
  const support::FlushDenormals mode;
  for (const Context& context : every_instruction_set())
    EXPECT_TRUE(same(expected, select_k(context, values, 700))) << context.isa();
}

TEST(SelectK, EmptyMatrices) {
  for (const Context& context : every_instruction_set()) {
    const Selection none = select_k(context, MatrixView<const float>(nullptr, 0, 5), 3);
    EXPECT_EQ(none.ids.rows(), 0U);
    EXPECT_EQ(none.ids.cols(), 3U);
    const Selection padded =
        select_k(context, MatrixView<const float>(nullptr, 2, 0), 3, {.short_rows = ShortRows::pad});
    const auto expected =
        oracle::select_k(MatrixView<const float>(nullptr, 2, 0), 3, Order::smallest, column_number);
    EXPECT_TRUE(same(expected, padded));
  }
}

// By hand: the contract in one row.
TEST(SelectK, TheOrderOfAnswers) {
  const float nan = support::numbered_nan(3);
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> row = {nan, 0.0F, infinity, -0.0F, -infinity, 1.0F, nan, 1.0F};
  const Context context = Context::cpu({.threads = 1});
  const MatrixView<const float> values(row.data(), 1, row.size());
  const auto ids_of = [](const Selection& selection) {
    return std::vector<Id>(selection.ids.data(), selection.ids.data() + selection.ids.cols());
  };
  const Selection smallest = select_k(context, values, 8);
  EXPECT_EQ(ids_of(smallest), (std::vector<Id>{4, 1, 3, 5, 7, 2, 0, 6}));
  EXPECT_TRUE(std::signbit(smallest.values(0, 2)));
  EXPECT_FALSE(std::signbit(smallest.values(0, 1)));
  EXPECT_EQ(ids_of(select_k(context, values, 8, {.order = Order::largest})),
            (std::vector<Id>{2, 5, 7, 1, 3, 4, 0, 6}));
  const std::vector<std::uint32_t> ids = {7, 6, 5, 4, 3, 2, 1, 4'000'000'000};
  const Selection named = select_k(context, values, MatrixView<const std::uint32_t>(ids.data(), 1, 8), 8);
  EXPECT_EQ(ids_of(named), (std::vector<Id>{3, 4, 6, 2, 4'000'000'000, 5, 1, 7}));
}

}  // namespace
}  // namespace nearwise
