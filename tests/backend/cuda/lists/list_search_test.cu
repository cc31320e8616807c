// Search in inverted lists on a CUDA device: ids and distances equal the definition's and the CPU's, bit for
// bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/cuda_test.h"
#include "support/device_array.h"
#include "support/list_cases.h"

namespace nearwise {
namespace {

using support::describe;
using support::Kind;
using support::ListCase;
using support::ListShape;

void expect_definition(const Context& context, const ListShape& shape) {
  SCOPED_TRACE(describe(shape));
  const ListCase made(shape);
  EXPECT_TRUE(made.holds(made.search(context)));
  EXPECT_EQ(context.memory_used(), 0U);
}

// Shape `number` of a metric: every kind of data, both codecs, otherwise random.
ListShape generated_shape(Metric metric, std::uint64_t number) {
  constexpr std::array<std::size_t, 9> dims = {1, 2, 5, 8, 15, 16, 33, 40, 70};
  const std::uint64_t seed = 1000 * static_cast<std::uint64_t>(metric) + number;
  const Random random = support::random_for(seed, support::Purpose::shapes);
  const auto below = [&](std::uint64_t draw, std::size_t bound) { return random.below(draw, bound); };
  // Fewer parts with tables of 256 entries, which take most of the time.
  const unsigned bits = below(8, 3) == 0 ? 8 : 4;
  ListShape shape = {
      .kind = support::every_kind[number % support::every_kind.size()],
      .metric = metric,
      .type = number % 3 == 0 ? support::every_type[below(0, support::every_type.size())] : ElementType::f32,
      .rows = 1 + below(1, below(2, 3) == 0 ? 6 : 250),
      .queries = 1 + below(3, 5),
      .dim = dims[below(4, bits == 8 ? 5 : dims.size())],
      .lists = 1 + below(5, below(6, 4) == 0 ? 1 : 12),
      .probes = 1 + below(7, 6),
      .bits = bits,
      .k = 1 + below(9, below(10, 2) == 0 ? 5 : 90),
      .rerank = below(11, 3) == 0,
      .centred = metric != Metric::inner_product && metric != Metric::cosine && below(12, 2) == 0,
      .seed = seed};
  // Sums of centroid and codeword beyond f32, which no index stores.
  if (shape.kind != Kind::largest && below(13, 3) != 0) shape.parts = 1 + below(14, shape.dim);
  shape.candidates = shape.rerank ? shape.k + below(15, 60) : shape.k;
  if (!shape.rerank && below(16, 3) == 0) shape.first_id = Id{1} << 40;
  return shape;
}

// The same for additive codes: few codebooks and dimensions, since every codeword is as long as a row.
ListShape additive_shape(Metric metric, std::uint64_t number) {
  constexpr std::array<std::size_t, 6> dims = {1, 2, 5, 8, 9, 33};
  ListShape shape = generated_shape(metric, number + 500);
  if (shape.kind == Kind::largest) shape.kind = Kind::normal;
  const Random random = support::random_for(shape.seed, support::Purpose::shapes);
  shape.dim = dims[random.below(20, dims.size())];
  shape.parts = 1 + random.below(21, shape.dim < 9 ? 5 : 2);
  shape.bits = 8;
  shape.additive = true;
  return shape;
}

class CudaListSearch : public gpu::CudaTest, public testing::WithParamInterface<Metric> {};
INSTANTIATE_TEST_SUITE_P(Metrics, CudaListSearch, testing::ValuesIn(support::every_metric),
                         support::metric_name);

TEST_P(CudaListSearch, GeneratedShapes) {
  const Context context = Context::cuda(0);
  constexpr int cases = 60;
  for (std::uint64_t number = 0; number < cases && !HasFailure(); ++number)
    if (gpu::is_due(number)) expect_definition(context, generated_shape(GetParam(), number));
  RecordProperty("generated_cases", cases);
}

TEST_P(CudaListSearch, GeneratedShapesOfAdditiveCodes) {
  const Context context = Context::cuda(0);
  constexpr int cases = 30;
  for (std::uint64_t number = 0; number < cases && !HasFailure(); ++number)
    if (gpu::is_due(number)) expect_definition(context, additive_shape(GetParam(), number));
  RecordProperty("generated_cases", cases);
}

// With the minimum memory that the costs state: many tiles of lists and queries, split lists.
TEST_P(CudaListSearch, LittleMemory) {
  for (const auto& [parts, additive] : {std::pair{0UL, false}, {3UL, false}, {2UL, true}}) {
    const ListShape shape = {.kind = Kind::near_duplicates,
                             .metric = GetParam(),
                             .rows = 900,
                             .queries = 3,
                             .dim = 7,
                             .lists = 4,
                             .probes = 3,
                             .parts = parts,
                             .bits = additive ? 8U : 4U,
                             .additive = additive,
                             .k = 9,
                             .candidates = parts == 0 ? 9UL : 30UL,
                             .rerank = parts != 0,
                             .seed = 3};
    const ListCase made(shape);
    const ListSearchCosts costs = made.costs(Context::cuda(0));
    const std::uint64_t least = costs.fixed_bytes + shape.queries * costs.bytes_per_query;
    for (const std::uint64_t limit : {least, 2 * least}) {
      const Context context = Context::cuda(0, {.memory_limit = limit});
      EXPECT_TRUE(made.holds(made.search(context))) << limit << ": " << describe(shape);
      EXPECT_LE(context.memory_peak(), limit);
      EXPECT_EQ(context.memory_used(), 0U);
    }
    const Context context = Context::cuda(0, {.memory_limit = 1000});
    const Error refusal = gpu::error_of([&] { made.search(context); });
    EXPECT_EQ(refusal.code(), ErrorCode::out_of_memory) << refusal.what();
    EXPECT_EQ(context.memory_used(), 0U);
  }
}

// Identical rows: scores prove nothing, and ids break ties.
TEST_P(CudaListSearch, MoreTiesThanRoom) {
  const Context context = Context::cuda(0);
  for (const auto& [rerank, additive] : {std::pair{false, false}, {true, false}, {false, true}})
    expect_definition(context, {.kind = Kind::identical,
                                .metric = GetParam(),
                                .rows = 120,
                                .queries = 2,
                                .dim = 6,
                                .lists = 2,
                                .probes = 2,
                                .parts = 3,
                                .additive = additive,
                                .k = 20,
                                .candidates = rerank ? 50UL : 20UL,
                                .rerank = rerank,
                                .seed = 9});
}

using CudaLists = gpu::CudaTest;

// More parts than tables in shared memory, and more rows than a block scans.
TEST_F(CudaLists, LongCodesAndLists) {
  const Context context = Context::cuda(0);
  for (const unsigned bits : {4U, 8U})
    expect_definition(context, {.rows = bits == 8 ? 150UL : 4600UL,
                                .queries = bits == 8 ? 1UL : 2UL,
                                .dim = bits == 8 ? 20UL : 3UL,
                                .lists = 1,
                                .probes = 1,
                                .parts = bits == 8 ? 18UL : 3UL,
                                .bits = bits,
                                .k = 20,
                                .candidates = 20,
                                .seed = bits});
}

// Tables of the maximum number of codebooks are loaded into shared memory in several passes.
TEST_F(CudaLists, MostCodebooks) {
  for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product})
    expect_definition(Context::cuda(0), {.kind = Kind::near_duplicates,
                                         .metric = metric,
                                         .rows = 300,
                                         .queries = 2,
                                         .dim = 4,
                                         .lists = 2,
                                         .probes = 2,
                                         .parts = 32,
                                         .additive = true,
                                         .k = 5,
                                         .candidates = 5,
                                         .seed = 21});
}

TEST_F(CudaLists, ReranksRowsOnTheDevice) {
  const ListShape shape = {
      .rows = 200, .queries = 4, .dim = 5, .parts = 2, .bits = 4, .k = 5, .candidates = 40, .rerank = true};
  const ListCase made(shape);
  const RowsView rows = made.rows();
  const auto* const elements = reinterpret_cast<const float*>(rows.data());
  support::DeviceArray<float> copied(std::vector<float>(elements, elements + shape.rows * shape.dim));
  EXPECT_TRUE(made.holds(
      made.search(Context::cuda(0), RowsView(copied.data(), ElementType::f32, shape.rows, shape.dim,
                                             shape.dim * sizeof(float), {DeviceKind::cuda, 0}))));
}

TEST_F(CudaLists, RefusesQueriesWithNaN) {
  for (const std::size_t parts : {0UL, 2UL}) {
    const ListCase made({.rows = 50, .queries = 3, .dim = 4, .parts = parts});
    std::vector<float> queries(12, 1.0F);
    queries[9] = std::numeric_limits<float>::quiet_NaN();
    const Error refusal = gpu::error_of(
        [&] { made.search_for(Context::cuda(0), MatrixView<const float>(queries.data(), 3, 4)); });
    EXPECT_EQ(refusal.code(), ErrorCode::invalid_argument) << refusal.what();
    EXPECT_NE(std::string(refusal.what()).find('2'), std::string::npos) << refusal.what();
  }
}

TEST_F(CudaLists, StopsWhenCancelled) {
  const ListCase made({.parts = 4});
  Context context = Context::cuda(0);
  context.cancel();
  EXPECT_EQ(gpu::error_of([&] { made.search(context); }).code(), ErrorCode::cancelled);
  EXPECT_EQ(context.memory_used(), 0U);
}

}  // namespace
}  // namespace nearwise
