// Beam search on a CUDA device gives the CPU's answers, bit for bit.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "backend/cuda/cuda_test.h"
#include "backend/cuda/warp/query_codes.cuh"
#include "codes/scalar_codec.h"
#include "support/graph_search_cases.h"

namespace nearwise {
namespace {

using support::describe;
using support::GraphCase;
using support::GraphFound;
using support::GraphShape;
using support::Kind;

void expect_cpu_answers(const GraphShape& shape) {
  const GraphCase made(shape);
  const Context context = Context::cuda(0);
  EXPECT_TRUE(made.search(Context::cpu({.threads = 1})) == made.search(context)) << describe(shape);
  EXPECT_EQ(context.memory_used(), 0U);
}

// Shape `number` of a metric: every kind of data, every type, otherwise random.
GraphShape generated_shape(Metric metric, std::uint64_t number) {
  constexpr std::array<std::size_t, 8> dims = {1, 3, 16, 64, 65, 128, 130, 200};
  constexpr std::array<std::size_t, 5> beams = {1, 5, 20, 64, 70};
  const std::uint64_t seed = 1000 * static_cast<std::uint64_t>(metric) + number;
  const Random random = support::random_for(seed, support::Purpose::shapes);
  const auto below = [&](std::uint64_t draw, std::size_t bound) { return random.below(draw, bound); };
  const std::size_t beam = beams[below(0, beams.size())];
  const std::size_t k = 1 + below(1, beam);
  const std::array<std::size_t, 3> shares = {100, 60, 5};
  return {.kind = support::every_kind[number % support::every_kind.size()],
          .metric = metric,
          .type = support::every_type[number % support::every_type.size()],
          .rows = 1 + below(2, 150),
          .dim = dims[below(3, dims.size())],
          .degree = degree_granule * (1 + below(4, 3)),
          .tops = 1 + below(5, 40),
          .leaves = 1 + below(6, 60),
          .queries = 1 + below(7, 6),
          .k = k,
          .beam = beam,
          .evaluated = k + below(8, beam - k + 1),
          .nibbles = below(9, 3) == 0,
          .allowed = shares[below(10, shares.size())],
          .absent = below(11, 3) == 0,
          .seed = seed};
}

class CudaSearchGraph : public gpu::CudaTest, public testing::WithParamInterface<Metric> {};
INSTANTIATE_TEST_SUITE_P(Metrics, CudaSearchGraph, testing::ValuesIn(support::every_metric),
                         support::metric_name);

TEST_P(CudaSearchGraph, GeneratedShapes) {
  constexpr int cases = 40;
  for (std::uint64_t number = 0; number < cases && !HasFailure(); ++number)
    if (gpu::is_due(number)) expect_cpu_answers(generated_shape(GetParam(), number));
  RecordProperty("generated_cases", cases);
}

using CudaGraphSearch = gpu::CudaTest;

// Each size of beams in registers, and in memory.
TEST_F(CudaGraphSearch, WideBeams) {
  std::uint64_t number = 0;
  for (const std::size_t beam : {64UL, 65UL, 128UL, 129UL, 256UL, 257UL, 300UL})
    for (const std::size_t allowed : {100UL, 50UL})
      if (gpu::is_due(number++))
        expect_cpu_answers({.kind = Kind::integers,
                            .rows = 3000,
                            .dim = 3,
                            .queries = 2,
                            .k = beam / 2,
                            .beam = beam,
                            .evaluated = beam,
                            .nibbles = beam % 2 == 1,
                            .allowed = allowed,
                            .seed = number});
}

// More rows than the set of seen rows holds: it is made anew.
TEST_F(CudaGraphSearch, ManySeenRows) {
  std::uint64_t number = 0;
  for (const bool is_filtered : {false, true})
    if (gpu::is_due(number++))
      expect_cpu_answers({.kind = Kind::normal,
                          .rows = 3000,
                          .dim = 4,
                          .degree = 128,
                          .queries = 2,
                          .k = 40,
                          .beam = 40,
                          .evaluated = 40,
                          .allowed = is_filtered ? 30UL : 100UL,
                          .absent = true,
                          .seed = number});
}

// As far as sums of squares go.
TEST_F(CudaGraphSearch, LongVectors) {
  std::uint64_t number = 0;
  for (const bool nibbles : {false, true})
    if (gpu::is_due(number++))
      expect_cpu_answers({.kind = Kind::one_hot,
                          .type = ElementType::u8,
                          .rows = 40,
                          .dim = ScalarCodec::max_dim - 1,
                          .tops = 2,
                          .leaves = 4,
                          .queries = 2,
                          .nibbles = nibbles,
                          .seed = number});
}

TEST_F(CudaGraphSearch, AGraphIsCopiedOnce) {
  const GraphCase made(GraphShape{});
  const GraphFound expected = made.search(Context::cpu({.threads = 1}));
  const Context context = Context::cuda(0);
  {
    const auto prepared = made.prepare(*open_stream(context));
    EXPECT_EQ(context.memory_used(), 0U);
    EXPECT_TRUE(expected == made.search(*open_stream(context), *prepared));
    const std::uint64_t kept = context.memory_used();
    EXPECT_GE(kept, GraphShape{}.rows * (64 + GraphShape{}.degree * sizeof(std::int32_t)));
    // Another context of the same device.
    const Context other = Context::cuda(0);
    EXPECT_TRUE(expected == made.search(*open_stream(other), *prepared));
    EXPECT_EQ(other.memory_used(), 0U);
    EXPECT_EQ(context.memory_used(), kept);
  }
  EXPECT_EQ(context.memory_used(), 0U);
}

// As little memory as one query needs, so that each is a batch.
TEST_F(CudaGraphSearch, LittleMemory) {
  const GraphCase made({.allowed = 50, .absent = true});
  const GraphFound expected = made.search(Context::cpu({.threads = 1}));
  int answers = 0;
  for (std::uint64_t limit = 20000; answers < 3; limit += 5000) {
    const Context context = Context::cuda(0, {.threads = 1, .memory_limit = limit});
    const Error error = gpu::error_of([&] {
      EXPECT_TRUE(expected == made.search(context)) << limit;
      ++answers;
    });
    EXPECT_LE(context.memory_peak(), limit);
    EXPECT_EQ(context.memory_used(), 0U) << limit;
    if (error.code() != ErrorCode::internal)
      EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << error.what();
  }
}

TEST_F(CudaGraphSearch, StopsWhenCancelled) {
  const GraphCase made(GraphShape{});
  Context context = Context::cuda(0);
  context.cancel();
  EXPECT_EQ(gpu::error_of([&] { made.search(context); }).code(), ErrorCode::cancelled);
  EXPECT_EQ(context.memory_used(), 0U);
}

// Every element has a place of its own, and those of one load are where its threads read them.
TEST(QueryCodes, PlacesAreDifferent) {
  for (const std::size_t dim : {1UL, 64UL, 130UL, 1000UL}) {
    ScalarCodec codec = {.dim = dim, .offsets = std::vector<float>(dim)};
    codec.nibble_offsets.assign(dim, 0.0F);
    std::vector<bool> bytes(gpu::query_size<gpu::ByteCodes>(codec.row_bytes()));
    std::vector<bool> nibbles(gpu::query_size<gpu::NibbleCodes>(codec.nibble_row_bytes()));
    for (std::size_t i = 0; i < dim; ++i) {
      ASSERT_LT(gpu::byte_place(i), bytes.size());
      ASSERT_LT(gpu::nibble_place(i), nibbles.size());
      EXPECT_FALSE(bytes[gpu::byte_place(i)]);
      EXPECT_FALSE(nibbles[gpu::nibble_place(i)]);
      bytes[gpu::byte_place(i)] = nibbles[gpu::nibble_place(i)] = true;
    }
  }
}

}  // namespace
}  // namespace nearwise
