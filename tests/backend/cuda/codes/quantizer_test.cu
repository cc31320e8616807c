// Product quantization, rotations and inverted files on a CUDA device: codes, tables, rows and results equal
// the CPU's.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/cuda/cuda_test.h"
#include "backend/dispatch.h"
#include "nearwise/ivf.h"
#include "nearwise/quantize/optimized_product_quantizer.h"
#include "nearwise/quantize/rotation.h"
#include "support/memory_limits.h"
#include "support/quantizer_cases.h"

namespace nearwise {
namespace {

using gpu::error_of;
using support::Kind;
using support::Layout;
using support::Rows;
using support::same;
using support::to_vector;

const Context& cpu() {
  static const Context context = Context::cpu({.threads = 1, .seed = 4});
  return context;
}

using CudaQuantizer = gpu::CudaTest;

TEST_F(CudaQuantizer, CodesAndTablesOfManyShapes) {
  constexpr std::array<std::size_t, 8> dims = {1, 2, 5, 8, 9, 17, 33, 64};
  constexpr std::array layouts = {Layout::dense, Layout::padded, Layout::unaligned};
  const Context context = Context::cuda(0);
  constexpr std::uint64_t cases = 60;
  for (std::uint64_t number = 0; number < cases && !HasFailure(); ++number) {
    if (!gpu::is_due(number)) continue;
    const Random random = support::random_for(number, support::Purpose::shapes);
    const Kind kind = support::every_kind[number % support::every_kind.size()];
    // Fewer elements for 256 codewords: all are compared.
    const unsigned bits = random.below(2, 5) == 0 ? 8 : 4;
    const std::size_t dim = dims[random.below(0, bits == 8 ? 4 : dims.size())];
    const std::size_t parts = 1 + random.below(1, dim);
    const Rows rows(support::generate(kind, 1 + random.below(3, bits == 8 ? 20 : 40), dim, number),
                    support::every_type[number % support::every_type.size()],
                    layouts[random.below(4, layouts.size())]);
    SCOPED_TRACE(fmt::format("{} dim {}, {} parts of {} bits, {} rows, case {}", name(kind), dim, parts, bits,
                             rows.rows(), number));
    const ProductQuantizer quantizer = support::untrained(kind, dim, parts, bits, number + 1);
    EXPECT_TRUE(same(to_vector(quantizer.encode(cpu(), rows)), quantizer.encode(context, rows)));
    for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product})
      EXPECT_TRUE(
          same(to_vector(quantizer.tables(cpu(), rows, metric)), quantizer.tables(context, rows, metric)));
  }
  RecordProperty("generated_cases", cases);
}

TEST_F(CudaQuantizer, InTheLeastMemoryThatIsNamed) {
  const Rows rows(support::generate(Kind::normal, 300, 12, 1), ElementType::f32);
  const ProductQuantizer quantizer = support::untrained(Kind::normal, 12, 5, 4, 2);
  const auto check = [&](const auto& work) {
    const Error refusal = error_of([&] { work(Context::cuda(0, {.memory_limit = 1})); });
    ASSERT_EQ(refusal.code(), ErrorCode::out_of_memory) << refusal.what();
    const std::uint64_t least = std::ranges::max(support::sizes_in(refusal.what()));
    const Context context = Context::cuda(0, {.memory_limit = least});
    EXPECT_TRUE(same(to_vector(work(cpu())), work(context)));
    EXPECT_LE(context.memory_peak(), least);
  };
  check([&](const Context& context) { return quantizer.encode(context, rows); });
  check([&](const Context& context) { return quantizer.tables(context, rows); });
  const Rotation rotation = Rotation::pca(cpu(), rows, 7);
  check([&](const Context& context) { return rotation.apply(context, rows); });
}

TEST_F(CudaQuantizer, RotatesRowsOfEveryType) {
  const Context context = Context::cuda(0);
  for (const std::size_t dim : {1UL, 7UL, 40UL})
    for (const ElementType type : support::every_type) {
      const Rows rows(support::generate(Kind::normal, 41, dim, dim), type, Layout::unaligned);
      const Rotation rotation = Rotation::pca(cpu(), rows, dim - dim / 3);
      const Matrix<float> rotated = rotation.apply(context, rows);
      EXPECT_TRUE(same(to_vector(rotation.apply(cpu(), rows)), rotated)) << dim << " " << name(type);
      EXPECT_TRUE(same(to_vector(rotation.reverse(cpu(), rotated)), rotation.reverse(context, rotated)));
    }
}

// In one piece, and in pieces of rows and columns when memory is short.
TEST_F(CudaQuantizer, CrossProductsInAnyMemory) {
  for (const auto& shape : {std::array<std::size_t, 3>{150, 35, 40}, {1, 1, 1}, {70, 3, 33}}) {
    const std::size_t rows = shape[0], left = shape[1], right = shape[2];
    const Rows columns(support::generate(Kind::cancelling, rows, left + right, rows), ElementType::f32);
    const auto* const data = reinterpret_cast<const float*>(columns.view().data());
    const std::size_t stride = left + right;
    const auto products = [&](const Context& context) {
      Matrix<double> sums(left, right);
      const auto stream = open_stream(context);
      dispatch(
          &Ops::cross_products, "cross_products", *stream,
          CrossProductsArgs{{data, rows, left, stride}, {data + left, rows, right, stride}, sums.view()});
      return sums;
    };
    const std::vector<double> expected = to_vector(products(cpu()));
    for (const std::uint64_t limit : {0, 60'000, 8'000, 2'000}) {
      const Context context = Context::cuda(0, {.memory_limit = limit});
      EXPECT_TRUE(same(expected, products(context))) << limit;
      EXPECT_EQ(context.memory_used(), 0U);
    }
  }
}

TEST_F(CudaQuantizer, TrainsAnOptimizedOneToTheBytesOfTheCpu) {
  const Rows rows(support::generate(Kind::near_duplicates, 40, 4, 3), ElementType::f32);
  const OptimizedProductQuantizerOptions options = {.quantizer = {.parts = 2, .bits = 4, .iterations = 1},
                                                    .rounds = 1};
  const Context context = Context::cuda(0, {.seed = 4});
  const auto expected = OptimizedProductQuantizer::train(cpu(), rows, options);
  const auto trained = OptimizedProductQuantizer::train(context, rows, options);
  EXPECT_EQ(support::codewords_of(expected.quantizer), support::codewords_of(trained.quantizer));
  EXPECT_TRUE(same(to_vector(expected.encode(cpu(), rows)), trained.encode(context, rows)));
}

class CudaIvf : public gpu::CudaTest, public testing::WithParamInterface<Metric> {};
INSTANTIATE_TEST_SUITE_P(Metrics, CudaIvf, testing::ValuesIn(support::every_metric), support::metric_name);

// Rows added and searched on either device.
TEST_P(CudaIvf, IsTheIndexOfTheCpu) {
  const support::Problem problem =
      support::make_problem({.kind = Kind::exact_duplicates, .rows = 150, .queries = 5, .dim = 8, .seed = 2});
  const Context context = Context::cuda(0);
  const auto make = [&](const Context& on) {
    Ivf index = Ivf::train(
        cpu(), problem.base,
        {.metric = GetParam(), .lists = 5, .iterations = 1, .encoding = Pq{.code_bytes = 2, .bits = 4}});
    index.add(on, problem.base);
    return index;
  };
  const Ivf expected = make(cpu());
  const Ivf index = make(context);
  for (const bool again : {false, true}) {
    const IvfSearchOptions options = {.probes = 3,
                                      .rerank = again ? RowsView(problem.base) : RowsView(),
                                      .candidates = again ? std::optional<std::size_t>(20) : std::nullopt};
    const auto answer = support::as_expected(expected.search(cpu(), problem.queries, 6, options));
    EXPECT_TRUE(support::same(answer, index.search(context, problem.queries, 6, options)));
  }
}

TEST_P(CudaIvf, OfAdditiveCodesIsTheIndexOfTheCpu) {
  const support::Problem problem =
      support::make_problem({.kind = Kind::exact_duplicates, .rows = 300, .queries = 5, .dim = 4, .seed = 2});
  const Context context = Context::cuda(0, {.seed = 4});
  const Ivf trained = Ivf::train(
      cpu(), problem.base,
      {.metric = GetParam(),
       .lists = 5,
       .iterations = 1,
       .encoding = Lsq{.code_bytes = 2, .rounds = 1, .train_iterations = 1, .encode_iterations = 1}});
  Ivf expected = trained.empty_copy();
  Ivf index = trained.empty_copy();
  const RowsView added = RowsView(problem.base).slice(0, 50);
  expected.add(cpu(), added);
  index.add(context, added);
  for (const bool again : {false, true}) {
    const IvfSearchOptions options = {.probes = 3,
                                      .rerank = again ? added : RowsView(),
                                      .candidates = again ? std::optional<std::size_t>(20) : std::nullopt};
    const auto answer = support::as_expected(expected.search(cpu(), problem.queries, 6, options));
    EXPECT_TRUE(support::same(answer, index.search(context, problem.queries, 6, options)));
  }
}

TEST_P(CudaIvf, SearchesInTheLeastMemoryThatIsNamed) {
  const support::Problem problem =
      support::make_problem({.rows = 400, .queries = 66, .dim = 6, .base_layout = Layout::dense, .seed = 3});
  Ivf index = Ivf::train(cpu(), problem.base, {.metric = GetParam(), .lists = 6});
  index.add(cpu(), problem.base);
  const auto search = [&](const Context& context) {
    return index.search(context, problem.queries, 4, {.probes = 2});
  };
  const Error refusal = error_of([&] { search(Context::cuda(0, {.memory_limit = 1})); });
  EXPECT_EQ(refusal.code(), ErrorCode::out_of_memory) << refusal.what();
  const std::uint64_t least = std::ranges::max(support::sizes_in(refusal.what()));
  const Context context = Context::cuda(0, {.memory_limit = least});
  EXPECT_TRUE(support::same(support::as_expected(search(cpu())), search(context)));
  EXPECT_LE(context.memory_peak(), least);
}

}  // namespace
}  // namespace nearwise
