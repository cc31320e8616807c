// Additive quantizers on a CUDA device: codes and results equal the CPU's, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
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

struct SearchCase {
  std::size_t queries, rows, dim, bytes, k;
};

// Few different codes: many scores are equal.
Matrix<std::uint8_t> random_codes(const SearchCase& given) {
  const Random random(given.bytes);
  Matrix<std::uint8_t> codes(given.rows, given.bytes);
  for (std::size_t i = 0; i < given.rows * given.bytes; ++i)
    codes.data()[i] = static_cast<std::uint8_t>(random.below(i, given.rows > 1000 ? 3 : 256));
  return codes;
}

// Codes of one or several words, tables larger than shared memory, every kind of selection, and tiles of
// queries and codes when memory is short.
TEST_F(CudaAdditive, SearchesInAnyMemory) {
  constexpr std::array<SearchCase, 7> cases = {{{1, 1, 1, 2, 1},
                                                {3, 70, 4, 4, 2},
                                                {2, 600, 3, 5, 600},
                                                {2, 333, 2, 33, 40},
                                                {5, 2500, 2, 3, 700},
                                                {3, 2700, 2, 2, 1500},
                                                {90, 40, 2, 2, 7}}};
  for (std::size_t number = 0; number < cases.size(); ++number) {
    if (!gpu::is_due(number)) continue;
    const SearchCase& given = cases[number];
    const Rows queries(support::generate(Kind::normal, given.queries, given.dim, number),
                       support::every_type[number % support::every_type.size()], Layout::padded);
    const Rows columns(support::generate(Kind::normal, given.dim, (given.bytes - 1) * 256, number + 1),
                       ElementType::f32);
    const Matrix<std::uint8_t> codes = random_codes(given);
    const std::vector<float> norms = support::even_norms(4);
    const std::vector<double> squares(given.queries, 0.7);
    for (const Order order : {Order::smallest, Order::largest}) {
      const auto search = [&](const Context& context, Neighbors& found) {
        const auto stream = open_stream(context);
        dispatch(&Ops::additive_search, "search", *stream,
                 AdditiveSearchArgs{
                     .queries = queries,
                     .columns = {reinterpret_cast<const float*>(columns.view().data()), given.dim,
                                 (given.bytes - 1) * 256},
                     .squares = order == Order::smallest ? std::span(squares) : std::span<const double>(),
                     .norms = norms,
                     .codes = codes,
                     .order = order,
                     .k = given.k,
                     .ids = found.ids.view(),
                     .best = found.distances.view(),
                     .progress = nullptr});
      };
      // Rows of the answers end with elements that are not written.
      const auto answer = [&] {
        const std::size_t width = given.k + number % 2;
        Neighbors made{Matrix<Id>(given.queries, width), Matrix<float>(given.queries, width)};
        std::fill_n(made.ids.data(), given.queries * width, no_id);
        std::fill_n(made.distances.data(), given.queries * width, 7.0F);
        return made;
      };
      Neighbors expected = answer();
      search(cpu(), expected);
      const std::uint64_t least =
          dispatch(&Ops::additive_search_bytes, "search", *open_stream(Context::cuda(0)),
                   AdditiveSearchShape{given.rows, given.dim, element_size(queries.view().type()),
                                       given.bytes, given.k});
      for (const std::uint64_t limit : {std::uint64_t{0}, least, least + 20'000, 2 * least}) {
        const Context context = Context::cuda(0, {.memory_limit = limit});
        Neighbors found = answer();
        search(context, found);
        EXPECT_TRUE(same(to_vector(expected.ids), found.ids)) << "case " << number << ", limit " << limit;
        EXPECT_TRUE(same(to_vector(expected.distances), found.distances))
            << "case " << number << ", limit " << limit;
        EXPECT_EQ(context.memory_used(), 0U);
        if (limit != 0) EXPECT_LE(context.memory_peak(), limit);
      }
    }
  }
}

// Products beyond the range of f32: infinite entries of either sign, whose sums are NaN.
TEST_F(CudaAdditive, SearchesWithSumsThatAreNoNumbers) {
  std::vector<float> codewords(3 * 256 * 2);
  for (std::size_t i = 0; i < codewords.size(); ++i)
    codewords[i] = (i % 3 == 0 ? 1e38F : 1.0F) * (i % 5 < 2 ? -1.0F : 1.0F) / static_cast<float>(1 + i % 7);
  const AdditiveQuantizer quantizer = AdditiveQuantizer::from_codebooks(2, codewords, support::even_norms(1));
  Matrix<float> queries(3, 2);
  for (std::size_t i = 0; i < 6; ++i) queries.data()[i] = i < 2 ? 1.0F : 5.0F * static_cast<float>(i);
  const Matrix<std::uint8_t> codes = random_codes({.rows = 400, .bytes = 4});
  for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product})
    for (const std::size_t k : {2UL, 30UL, 400UL}) {
      const Neighbors expected = quantizer.search(cpu(), queries, codes, k, {.metric = metric});
      const Neighbors found = quantizer.search(Context::cuda(0), queries, codes, k, {.metric = metric});
      EXPECT_TRUE(same(to_vector(expected.ids), found.ids)) << name(metric) << " k " << k;
      if (k == 400) EXPECT_TRUE(std::isnan(expected.distances(2, k - 1)));
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
