// Additive quantizers on a CUDA device: codes and results equal the CPU's, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/cuda/cuda_test.h"
#include "backend/dispatch.h"
#include "support/additive_cases.h"
#include "support/memory_limits.h"

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

using CudaAdditive = gpu::CudaTest;

TEST_F(CudaAdditive, CodesOfManyShapes) {
  constexpr std::array<std::size_t, 8> dims = {1, 2, 5, 15, 16, 17, 33, 40};
  constexpr std::array layouts = {Layout::dense, Layout::padded, Layout::unaligned};
  const Context context = Context::cuda(0, {.seed = 4});
  constexpr std::uint64_t cases = 30;
  for (std::uint64_t number = 0; number < cases && !HasFailure(); ++number) {
    if (!gpu::is_due(number)) continue;
    const Random random = support::random_for(number, support::Purpose::shapes);
    const Kind kind = support::every_kind[number % support::every_kind.size()];
    // Fewer elements for more codebooks, whose pair tables have 65,536 entries per pair.
    const std::size_t codebooks = number % 7 == 0 ? 4 + random.below(1, 2) : 1 + random.below(1, 3);
    const std::size_t dim = dims[random.below(0, codebooks < 3 ? dims.size() : 3)];
    const Rows rows(support::generate(kind, random.below(2, 12), dim, number),
                    support::every_type[number % support::every_type.size()],
                    layouts[random.below(3, layouts.size())]);
    const AdditiveEncodeOptions options = {.iterations = 1 + random.below(4, 5),
                                           .passes = 1 + random.below(5, 4),
                                           .perturbed = random.below(6, codebooks + 1)};
    SCOPED_TRACE(fmt::format("{} dim {}, {} codebooks, {} rows, {} iterations, case {}", name(kind), dim,
                             codebooks, rows.rows(), options.iterations, number));
    const AdditiveQuantizer quantizer = support::untrained_additive(kind, dim, codebooks, number + 1);
    EXPECT_TRUE(
        same(to_vector(quantizer.encode(cpu(), rows, options)), quantizer.encode(context, rows, options)));
  }
  RecordProperty("generated_cases", cases);
}

// Far rows and perturbations away from them: sums leave the range, and steps are repeated with saturation.
TEST_F(CudaAdditive, SumsThatSaturate) {
  const Context context = Context::cuda(0, {.seed = 4});
  const AdditiveQuantizer quantizer = support::saturating_additive(3, 1);
  Matrix<float> rows(17, 1);
  for (std::size_t row = 0; row < rows.rows(); ++row) rows(row, 0) = 0.4F * static_cast<float>(row) - 3;
  const AdditiveEncodeOptions options = {.iterations = 4, .passes = 2, .perturbed = 3};
  EXPECT_TRUE(
      same(to_vector(quantizer.encode(cpu(), rows, options)), quantizer.encode(context, rows, options)));
}

// More iterations than one launch has; settled codes end a descent before its last round.
TEST_F(CudaAdditive, ManyIterationsAndRounds) {
  const Rows rows(support::generate(Kind::normal, 3, 3, 5), ElementType::f32);
  const AdditiveQuantizer quantizer = support::untrained_additive(Kind::normal, 3, 2, 6);
  const AdditiveEncodeOptions options = {.iterations = 35, .passes = std::size_t{1} << 40, .perturbed = 1};
  EXPECT_TRUE(same(to_vector(quantizer.encode(cpu(), rows, options)),
                   quantizer.encode(Context::cuda(0, {.seed = 4}), rows, options)));
}

// Codes of one or several words, tables larger than shared memory, and tiles when memory is short.
TEST_F(CudaAdditive, CodeSumsInAnyMemory) {
  for (const auto& shape : {std::array<std::size_t, 3>{1, 1, 1}, {3, 70, 4}, {2, 600, 5}, {2, 33, 33}}) {
    const std::size_t queries = shape[0], rows = shape[1], bytes = shape[2];
    const Random random(bytes);
    Matrix<float> tables(queries, bytes * 256);
    for (std::size_t i = 0; i < queries * bytes * 256; ++i)
      tables.data()[i] = static_cast<float>(random.normal(i));
    Matrix<std::uint8_t> codes(rows, bytes);
    for (std::size_t i = 0; i < rows * bytes; ++i)
      codes.data()[i] = static_cast<std::uint8_t>(random.below(i, 256));
    const auto sums = [&](const Context& context) {
      Matrix<float> out(queries, rows);
      const auto stream = open_stream(context);
      dispatch(&Ops::code_sums, "code_sums", *stream, CodeSumsArgs{tables, codes, out.view()});
      return out;
    };
    const std::vector<float> expected = to_vector(sums(cpu()));
    for (const std::uint64_t limit : {0, 20'000, 45'000}) {
      if (limit != 0 && limit < bytes * 1024 + 8'000) continue;
      const Context context = Context::cuda(0, {.memory_limit = limit});
      EXPECT_TRUE(same(expected, sums(context))) << limit << " bytes, codes of " << bytes;
      EXPECT_EQ(context.memory_used(), 0U);
    }
  }
}

TEST_F(CudaAdditive, SearchesAndDecodesAsTheCpu) {
  const AdditiveQuantizer quantizer = support::untrained_additive(Kind::integers, 5, 2, 10);
  const Rows rows(support::generate(Kind::integers, 90, 5, 11), ElementType::f32);
  const Rows queries(support::generate(Kind::integers, 7, 5, 12), ElementType::f32);
  const Matrix<std::uint8_t> codes = quantizer.encode(cpu(), rows, {.iterations = 1});
  const Context context = Context::cuda(0);
  EXPECT_TRUE(same(to_vector(quantizer.decode(cpu(), codes)), quantizer.decode(context, codes)));
  for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product})
    for (const std::size_t k : {1UL, 10UL, 95UL}) {
      const Neighbors expected = quantizer.search(cpu(), queries, codes, k, {.metric = metric});
      const Neighbors found = quantizer.search(context, queries, codes, k, {.metric = metric});
      EXPECT_TRUE(same(to_vector(expected.ids), found.ids)) << name(metric) << " k " << k;
      EXPECT_TRUE(same(to_vector(expected.distances), found.distances)) << name(metric) << " k " << k;
    }
  EXPECT_EQ(quantizer.encode(context, Matrix<float>(0, 5)).rows(), 0U);
  EXPECT_EQ(quantizer.search(context, queries, codes.view().slice(0, 0), 2).ids(0, 1), no_id);
}

TEST_F(CudaAdditive, InTheLeastMemoryThatIsNamed) {
  const Rows rows(support::generate(Kind::normal, 150, 4, 13), ElementType::f32);
  const AdditiveQuantizer quantizer = support::untrained_additive(Kind::normal, 4, 2, 14);
  const Matrix<std::uint8_t> codes = quantizer.encode(cpu(), rows, {.iterations = 1});
  const auto check = [&](const auto& work) {
    const Error refusal = error_of([&] { work(Context::cuda(0, {.memory_limit = 1, .seed = 4})); });
    ASSERT_EQ(refusal.code(), ErrorCode::out_of_memory) << refusal.what();
    const std::uint64_t least = std::ranges::max(support::sizes_in(refusal.what()));
    const Context context = Context::cuda(0, {.memory_limit = least, .seed = 4});
    EXPECT_TRUE(same(to_vector(work(cpu())), work(context)));
    EXPECT_LE(context.memory_peak(), least);
  };
  check([&](const Context& context) { return quantizer.encode(context, rows, {.iterations = 1}); });
  check([&](const Context& context) {
    return quantizer.search(context, rows.view().slice(0, 5), codes, 3).ids;
  });
}

}  // namespace
}  // namespace nearwise
