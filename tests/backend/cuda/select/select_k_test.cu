// select_k on a CUDA device equals the CPU bit for bit: generated shapes, tiles, limits, places, errors.
//
// Catches, in addition to row_selection_test.cu: a row or column lost between tiles, ids of the wrong tile,
// confused strides, memory beyond the limit, a lost progress report.
#include "nearwise/select_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "backend/cuda/cuda_test.h"
#include "support/device_array.h"
#include "support/memory_limits.h"
#include "support/select_cases.h"

namespace nearwise {
namespace {

using support::both_orders;
using support::column_number;
using support::every_row_kind;
using support::RowKind;
using support::same;
using support::ValueRows;

oracle::SelectionAnswer as_expected(const Selection& selection) {
  const std::size_t size = selection.ids.rows() * selection.ids.cols();
  return {selection.ids.rows(),
          selection.ids.cols(),
          {selection.ids.data(), selection.ids.data() + size},
          {selection.values.data(), selection.values.data() + size}};
}

// Descending with repetitions, so that position and id never agree by chance.
template <typename IdType>
std::vector<IdType> some_ids(std::size_t count, std::uint64_t seed) {
  const Random random = support::random_for(seed, support::Purpose::rows);
  std::vector<IdType> ids(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t number = random.below(i, count * 3 / 4 + 1);
    if constexpr (sizeof(IdType) == 4)
      ids[i] = static_cast<IdType>(number * 1000);
    else
      ids[i] = (static_cast<Id>(number) - static_cast<Id>(count / 4)) * (Id{1} << 40);
  }
  return ids;
}

enum class GivenIds { none, narrow, wide };

// A generated selection is a pure function of its number.
struct GeneratedCase {
  RowKind kind;
  std::size_t rows, cols, k;
  Order order;
  GivenIds given;
  bool shared;  // one row of ids

  explicit GeneratedCase(std::uint64_t number) {
    const Random random(number, 77);
    const auto spread = [&](std::uint64_t index, double most) {  // log-uniform, from 0
      return static_cast<std::size_t>(std::exp(random.uniform(index) * std::log(most + 1))) - 1;
    };
    kind = every_row_kind[number % every_row_kind.size()];
    cols = spread(1, 20'001);
    k = 1 + spread(2, 2048);
    // Long rows once, short ones several times, and none.
    rows =
        random.below(3, 20) == 0 ? 0 : 1 + random.below(4, 1 + std::min<std::uint64_t>(6, 2000 / (cols + k)));
    order = both_orders[random.below(5, 2)];
    given = std::array{GivenIds::none, GivenIds::narrow, GivenIds::wide}[random.below(6, 3)];
    shared = random.below(7, 2) == 0;
  }

  Selection select(const Context& context) const {
    const ValueRows values(kind, rows, cols, 5000 + cols, cols % 4);
    const SelectOptions options = {.order = order,
                                   .short_rows = k > cols ? ShortRows::pad : ShortRows::refuse};
    const std::size_t id_rows = shared || rows == 0 ? 1 : rows;
    const auto with_ids = [&](const auto& ids) {
      using IdType = std::remove_cvref_t<decltype(ids[0])>;
      return select_k(context, values, MatrixView<const IdType>(ids.data(), id_rows, cols, cols + 1), k,
                      options);
    };
    switch (given) {
      case GivenIds::none: return select_k(context, values, k, options);
      case GivenIds::narrow: return with_ids(some_ids<std::uint32_t>(id_rows * (cols + 1), cols));
      case GivenIds::wide: return with_ids(some_ids<Id>(id_rows * (cols + 1), cols));
    }
    return {};
  }

  std::string description() const {
    return fmt::format("{}, {} x {}, k {}, {}, ids {}{}", support::name(kind), rows, cols, k,
                       order == Order::largest ? "largest" : "smallest", static_cast<int>(given),
                       shared ? " shared" : "");
  }
};

// 640 shapes in 32 tests, which can run in parallel. tools/prove adds up what they record.
constexpr int cases_of_test = 20;
class SelectKGenerated : public gpu::CudaTest, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Cuda, SelectKGenerated, testing::Range(0, 32));

TEST_P(SelectKGenerated, IsTheAnswerOfTheCpu) {
  const Context cpu = Context::cpu({.threads = 1});
  const Context cuda = Context::cuda(GetParam() % gpu::device_count());
  for (int i = 0; i < cases_of_test; ++i) {
    const auto number = static_cast<std::uint64_t>(GetParam() * cases_of_test + i);
    if (!gpu::is_due(number)) continue;
    const GeneratedCase generated(number);
    EXPECT_TRUE(same(as_expected(generated.select(cpu)), generated.select(cuda))) << generated.description();
  }
  EXPECT_EQ(cuda.memory_used(), 0U);
  RecordProperty("generated_cases", cases_of_test);
}

class CudaSelectK : public gpu::CudaTest {};

// The limit named by an error message suffices exactly; tiles of rows and columns give the same result.
TEST_F(CudaSelectK, TightLimitsGiveTheSameBytes) {
  struct Shape {
    std::size_t rows, columns, k;
  };
  for (const Shape& shape :
       {Shape{9, 700, 50}, Shape{2, 9000, 90}, Shape{1, 9000, 1500}, Shape{3, 1200, 1200}})
    for (const bool with_ids : {false, true}) {
      const ValueRows values(RowKind::anything, shape.rows, shape.columns, 2, 3);
      const std::vector<Id> ids = some_ids<Id>(shape.rows * shape.columns, 3);
      const MatrixView<const Id> id_view(ids.data(), shape.rows, shape.columns);
      const auto select = [&](std::uint64_t limit) {
        const Context context = Context::cuda(0, {.memory_limit = limit});
        Selection selection =
            with_ids ? select_k(context, values, id_view, shape.k) : select_k(context, values, shape.k);
        EXPECT_LE(context.memory_peak(), limit);
        EXPECT_EQ(context.memory_used(), 0U);
        return selection;
      };
      const auto expected =
          oracle::select_k(values, shape.k, Order::smallest, [&](std::size_t row, std::size_t column) {
            return with_ids ? id_view(row, column) : static_cast<Id>(column);
          });
      const Error refusal = gpu::error_of([&] { select(1); });
      ASSERT_EQ(refusal.code(), ErrorCode::out_of_memory) << refusal.what();
      const std::uint64_t least = support::sizes_in(refusal.what()).back();
      for (const std::uint64_t limit : {least, least + least / 2, 4 * least}) {
        SCOPED_TRACE(fmt::format("{} x {}, k {}, limit {} of least {}{}", shape.rows, shape.columns, shape.k,
                                 limit, least, with_ids ? ", ids" : ""));
        EXPECT_TRUE(same(expected, select(limit)));
      }
      EXPECT_EQ(gpu::error_of([&] { select(least - least / 50); }).code(), ErrorCode::out_of_memory);
    }
}

TEST_F(CudaSelectK, ReadsValuesAndIdsOnTheDevice) {
  const std::size_t rows = 3;
  const std::size_t columns = 5000;
  const ValueRows values(RowKind::few_values, rows, columns, 4, 2);
  const MatrixView<const float> view = values;
  const std::vector<std::uint32_t> ids = some_ids<std::uint32_t>(columns, 5);
  support::DeviceArray<float> device_values(std::span(view.data(), rows * view.stride()));
  support::DeviceArray<std::uint32_t> device_ids(ids);
  const Place place = {DeviceKind::cuda, 0};
  const MatrixView<const float> on_device(device_values.data(), rows, columns, view.stride(), place);
  const MatrixView<const std::uint32_t> ids_on_device(device_ids.data(), 1, columns, columns, place);
  const Context cuda = Context::cuda(0);
  for (const std::size_t k : {20, 1100}) {
    EXPECT_TRUE(
        same(oracle::select_k(values, k, Order::smallest, column_number), select_k(cuda, on_device, k)));
    const auto expected = oracle::select_k(values, k, Order::largest, [&](std::size_t, std::size_t column) {
      return static_cast<Id>(ids[column]);
    });
    EXPECT_TRUE(same(expected, select_k(cuda, on_device, ids_on_device, k, {.order = Order::largest})));
  }
  // Host ids that do not fit split the columns of values on the device.
  const std::vector<Id> wide = some_ids<Id>(columns, 6);
  const auto expected = oracle::select_k(values, 20, Order::smallest,
                                         [&](std::size_t, std::size_t column) { return wide[column]; });
  const Context limited = Context::cuda(0, {.memory_limit = 30'000});
  EXPECT_TRUE(
      same(expected, select_k(limited, on_device, MatrixView<const Id>(wide.data(), 1, columns), 20)));
}

TEST_F(CudaSelectK, ReportsProgress) {
  const ValueRows values(RowKind::uniform, 50, 200, 6);
  std::vector<std::uint64_t> done;
  int seconds = 0;
  const Context context = Context::cuda(0, {.memory_limit = 20'000,
                                            .progress =
                                                [&](const Progress& progress) {
                                                  EXPECT_STREQ(progress.operation, "select_k");
                                                  EXPECT_EQ(progress.total, 50U * 200U);
                                                  done.push_back(progress.done);
                                                },
                                            .clock = [&] { return static_cast<double>(++seconds); }});
  select_k(context, values, 5);
  ASSERT_GT(done.size(), 1U);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_EQ(done.back(), 50U * 200U);
}

TEST_F(CudaSelectK, StopsBetweenTiles) {
  const ValueRows values(RowKind::uniform, 50, 200, 6);
  const Context* cancelled = nullptr;
  std::uint64_t done = 0;
  int seconds = 0;
  const Context context = Context::cuda(0, {.memory_limit = 20'000,
                                            .progress =
                                                [&](const Progress& progress) {
                                                  done = progress.done;
                                                  cancelled->cancel();
                                                },
                                            .clock = [&] { return static_cast<double>(++seconds); }});
  cancelled = &context;
  EXPECT_EQ(gpu::error_of([&] { select_k(context, values, 5); }).code(), ErrorCode::cancelled);
  EXPECT_LT(done, 50U * 200U);
  EXPECT_EQ(context.memory_used(), 0U);
}

TEST_F(CudaSelectK, RefusesMemoryOfAnotherDevice) {
  if (gpu::device_count() < 2) GTEST_SKIP() << "needs two devices";
  const float never_read = 0;
  const MatrixView<const float> elsewhere(&never_read, 1, 1, 1, {DeviceKind::cuda, 1});
  const Error refusal = gpu::error_of([&] { select_k(Context::cuda(0), elsewhere, 1); });
  EXPECT_EQ(refusal.code(), ErrorCode::invalid_argument) << refusal.what();
}

}  // namespace
}  // namespace nearwise
