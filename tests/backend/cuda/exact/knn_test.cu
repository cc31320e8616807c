// Exact search on a CUDA device: ids and distances equal the CPU's, bit for bit.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "backend/cuda/cuda_test.h"
#include "nearwise/exact.h"
#include "support/device_array.h"
#include "support/knn_cases.h"
#include "support/memory_limits.h"

namespace nearwise {
namespace {

using gpu::error_of;
using support::describe;
using support::Kind;
using support::KnnCase;
using support::Layout;
using support::Problem;
using support::Rows;
using support::Values;

const Context& cpu() {
  static const Context context = Context::cpu({.threads = 1});
  return context;
}

oracle::Answer expected_answer(const Problem& problem, std::size_t k, const KnnOptions& options) {
  return support::as_expected(knn(cpu(), problem.queries, problem.base, k, options));
}

void expect_cpu_answer(const Context& context, const KnnCase& knn_case) {
  SCOPED_TRACE(describe(knn_case));
  const Problem problem = support::make_problem(knn_case.recipe);
  const KnnOptions options = support::options_for(knn_case);
  EXPECT_TRUE(support::same(expected_answer(problem, knn_case.k, options),
                            knn(context, problem.queries, problem.base, knn_case.k, options)));
}

// Case `number` of a metric: every kind of data three times, with varying shapes, types and layouts.
KnnCase generated_case(Metric metric, std::uint64_t number) {
  constexpr std::array<std::size_t, 11> dims = {1, 2, 3, 7, 8, 9, 16, 31, 33, 64, 100};
  constexpr std::array layouts = {Layout::dense, Layout::padded, Layout::unaligned};
  const std::uint64_t seed = 1000 * static_cast<std::uint64_t>(metric) + number;
  const Random random = support::random_for(seed, support::Purpose::shapes);
  const auto choose = [&](std::uint64_t draw, const auto& from) {
    return from[static_cast<std::size_t>(random.below(draw, from.size()))];
  };
  const bool few = random.below(0, 2) == 0;
  const std::size_t rows = 1 + static_cast<std::size_t>(random.below(1, few ? 20 : 300));
  const std::array<std::size_t, 8> ks = {1, 1, 2, 10, 26, 60, rows, rows + 3};
  KnnCase made;
  made.recipe = {.kind = support::every_kind[number % support::every_kind.size()],
                 .rows = rows,
                 .queries = 1 + static_cast<std::size_t>(random.below(2, 9)),
                 .dim = choose(3, dims),
                 .base_type = number % 2 == 0 ? ElementType::f32 : choose(4, support::every_type),
                 .query_type = number % 4 < 2 ? ElementType::f32 : choose(5, support::every_type),
                 .base_layout = choose(6, layouts),
                 .query_layout = choose(7, layouts),
                 .seed = seed};
  made.metric = metric;
  made.k = choose(8, ks);
  return made;
}

class CudaKnn : public gpu::CudaTest, public testing::WithParamInterface<Metric> {};

TEST_P(CudaKnn, SixtyShapes) {
  const Context context = Context::cuda(0);
  constexpr int cases = 60;
  for (std::uint64_t number = 0; number < cases && !HasFailure(); ++number)
    if (gpu::is_due(number)) expect_cpu_answer(context, generated_case(GetParam(), number));
  RecordProperty("generated_cases", cases);
}

// Lower precision with truncating accumulation gives the same result.
TEST_P(CudaKnn, FortyShapesOnTensorCores) {
  for (const char* isa : {"tf32", "bf16"}) {
    const Context context = Context::cuda(0, {.isa = isa});
    for (std::uint64_t number = 100; number < 120 && !HasFailure(); ++number)
      if (gpu::is_due(number)) expect_cpu_answer(context, generated_case(GetParam(), number));
  }
}

// As in k-means: the nearest of a few rows, mostly certified by the two best scores.
TEST_P(CudaKnn, TheNearestOnly) {
  for (const std::size_t rows : {1, 2, 3, 40, 700})
    for (const Kind kind : {Kind::normal, Kind::near_duplicates, Kind::identical})
      expect_cpu_answer(Context::cuda(0),
                        {.recipe = {.kind = kind, .rows = rows, .queries = 9, .dim = 12, .seed = rows},
                         .metric = GetParam(),
                         .k = 1});
}

// Minimal tiles of queries and rows, blocks of the base and pieces of packing.
TEST_P(CudaKnn, TheLeastMemoryThatIsNamedWillDo) {
  for (const std::size_t k : {3, 40}) {
    const Problem problem =
        support::make_problem({.kind = Kind::normal, .rows = 500, .queries = 7, .dim = 20, .seed = k});
    const KnnOptions options = {.metric = GetParam()};
    const Error refusal = error_of(
        [&] { knn(Context::cuda(0, {.memory_limit = 1}), problem.queries, problem.base, k, options); });
    EXPECT_EQ(refusal.code(), ErrorCode::out_of_memory) << refusal.what();
    const std::vector<std::uint64_t> numbers = support::sizes_in(refusal.what());
    ASSERT_FALSE(numbers.empty()) << refusal.what();
    const std::uint64_t least = *std::max_element(numbers.begin(), numbers.end());
    const oracle::Answer expected = expected_answer(problem, k, options);
    for (const std::uint64_t limit : {least, 2 * least, 5 * least}) {
      const Context context = Context::cuda(0, {.memory_limit = limit});
      EXPECT_TRUE(support::same(expected, knn(context, problem.queries, problem.base, k, options))) << limit;
      EXPECT_LE(context.memory_peak(), limit);
      EXPECT_EQ(context.memory_used(), 0U);
    }
  }
}

// Scores cannot separate any rows: all are evaluated, also with minimal memory.
TEST_P(CudaKnn, NearDuplicatesAreEvaluated) {
  for (const Kind kind : {Kind::nearer_duplicates, Kind::identical, Kind::offset_1e6}) {
    const KnnCase knn_case = {.recipe = {.kind = kind, .rows = 400, .queries = 5, .dim = 12, .seed = 5},
                              .metric = GetParam(),
                              .k = 2};
    expect_cpu_answer(Context::cuda(0), knn_case);
    expect_cpu_answer(Context::cuda(0, {.memory_limit = 200'000}), knn_case);
  }
}

TEST_P(CudaKnn, KBeyondTheRegistersOfSelection) {
  for (const std::size_t k : {1000, 1024, 1100})
    expect_cpu_answer(
        Context::cuda(0),
        {.recipe = {.rows = 1300, .queries = 2, .dim = 3, .seed = k}, .metric = GetParam(), .k = k});
}

TEST_P(CudaKnn, RowsOnTheDevice) {
  const std::size_t dim = 9, stride = 11, rows = 150, queries = 6;
  const Values values = support::generate(Kind::offset_1e4, rows + queries, stride, 4);
  std::vector<float> elements;
  for (std::size_t row = 0; row < rows + queries; ++row)
    for (const double value : values.row(row)) elements.push_back(static_cast<float>(value));
  support::DeviceArray<float> on_device(elements);
  const auto view = [&](const float* data, std::size_t first, std::size_t count, Place place) {
    return RowsView(data + first * stride, ElementType::f32, count, dim, stride * sizeof(float), place);
  };
  const Place device = {DeviceKind::cuda, 0};
  const RowsView host_base = view(elements.data(), 0, rows, {}),
                 host_queries = view(elements.data(), rows, queries, {});
  const RowsView base = view(on_device.data(), 0, rows, device),
                 all_queries = view(on_device.data(), rows, queries, device);
  const Context context = Context::cuda(0);
  const KnnOptions options = {.metric = GetParam()};
  const oracle::Answer expected = support::as_expected(knn(cpu(), host_queries, host_base, 4, options));
  EXPECT_TRUE(support::same(expected, knn(context, all_queries, base, 4, options)));
  EXPECT_TRUE(support::same(expected, knn(context, host_queries, base, 4, options)));
  EXPECT_TRUE(support::same(expected, knn(context, all_queries, host_base, 4, options)));
  // All rows are evaluated in place.
  const oracle::Answer all = support::as_expected(knn(cpu(), host_base, host_base, 1, options));
  EXPECT_TRUE(support::same(all, knn(context, base, base, 1, options)));

  const RowsView odd(reinterpret_cast<const std::byte*>(on_device.data()) + 1, ElementType::f32, 3, dim,
                     stride * sizeof(float), device);
  const Error error = error_of([&] { knn(context, odd, base, 1, options); });
  EXPECT_STREQ(error.what(), "knn: rows on a device must be aligned to their elements of 4 bytes");
}

TEST_P(CudaKnn, APreparedBaseAndAGraph) {
  const Problem problem = support::make_problem({.rows = 120, .queries = 5, .dim = 10, .seed = 8});
  const Context context = Context::cuda(0);
  const KnnOptions options = {.metric = GetParam()};
  const Exact prepared = Exact::prepare(context, problem.base, {.metric = GetParam()});
  EXPECT_TRUE(
      support::same(expected_answer(problem, 6, options), prepared.search(context, problem.queries, 6)));
  EXPECT_TRUE(support::same(support::as_expected(exact_knn_graph(cpu(), problem.base, 4, options)),
                            exact_knn_graph(context, problem.base, 4, options)));
}

// Through pinned memory; with little memory in several blocks, which are too small for it.
TEST_P(CudaKnn, LargerInputsAreStaged) {
  const KnnCase knn_case = {
      .recipe = {.rows = 1100, .queries = 3, .dim = 64, .base_layout = Layout::padded, .seed = 6},
      .metric = GetParam(),
      .k = 3};
  expect_cpu_answer(Context::cuda(0), knn_case);
  const Context little = Context::cuda(0, {.memory_limit = 300'000});
  expect_cpu_answer(little, knn_case);
  EXPECT_LE(little.memory_peak(), 300'000U);
}

void put_bits(Rows& rows, ElementType type, std::size_t row, std::size_t i, bool infinite) {
  switch (type) {
    case ElementType::f16:
      rows.put(row, i, Float16{static_cast<std::uint16_t>(infinite ? 0xFC00 : 0x7E00)});
      break;
    case ElementType::bf16:
      rows.put(row, i, BFloat16{static_cast<std::uint16_t>(infinite ? 0xFF80 : 0x7FC0)});
      break;
    default:
      rows.put(row, i,
               infinite ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN());
  }
}

TEST_P(CudaKnn, NonFiniteElementsAreRefusedAsOnTheCpu) {
  const Context context = Context::cuda(0);
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16})
    for (const bool infinite : {true, false})
      for (const bool in_base : {true, false}) {
        Rows base(support::generate(Kind::normal, 40, 33, 1), type);
        Rows queries(support::generate(Kind::normal, 6, 33, 2), type);
        put_bits(in_base ? base : queries, type, 5, 32, infinite);
        put_bits(in_base ? base : queries, type, 3, 7, infinite);
        const auto message = [&](const Context& where) {
          const Error error = error_of([&] { knn(where, queries, base, 2, {.metric = GetParam()}); });
          EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
          return std::string(error.what());
        };
        EXPECT_EQ(message(context), message(cpu()));
        EXPECT_EQ(context.memory_used(), 0U);
      }
}

TEST_P(CudaKnn, EmptyInputs) {
  const Context context = Context::cuda(0);
  const Problem problem = support::make_problem({.rows = 7, .queries = 3, .dim = 4, .seed = 1});
  const KnnOptions options = {.metric = GetParam(), .short_rows = ShortRows::pad};
  const RowsView queries = problem.queries, base = problem.base;
  for (const auto& [some_queries, some_base] :
       {std::pair(queries.slice(0, 0), base), std::pair(queries, base.slice(0, 0))})
    EXPECT_TRUE(support::same(support::as_expected(knn(cpu(), some_queries, some_base, 3, options)),
                              knn(context, some_queries, some_base, 3, options)));
}

INSTANTIATE_TEST_SUITE_P(Metrics, CudaKnn, testing::ValuesIn(support::every_metric), support::metric_name);

}  // namespace
}  // namespace nearwise
