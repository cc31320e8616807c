// Pruning on a CUDA device keeps the CPU's edges.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "backend/cuda/cuda_test.h"
#include "support/prune_cases.h"

namespace nearwise {
namespace {

using support::describe;
using support::PruneCase;
using support::PruneShape;

void expect_cpu_edges(const PruneShape& shape) {
  const PruneCase made(shape);
  const Context context = Context::cuda(0);
  EXPECT_EQ(made.edges(Context::cpu({.threads = 1})), made.edges(context)) << describe(shape);
  EXPECT_EQ(context.memory_used(), 0U);
}

PruneShape generated_shape(std::uint64_t number) {
  const Random random(number, 94);
  const auto below = [&](std::uint64_t draw, std::size_t bound) { return random.below(draw, bound); };
  const std::array<unsigned, 3> values = {1, 3, 256};
  const std::size_t degree = degree_granule * (1 + below(0, 3));
  const bool in_place = below(1, 3) == 0;
  return {.rows = 1 + below(2, 120),
          .row_bytes = 64 * (1 + below(3, 4)),
          .values = values[below(4, values.size())],
          .length = in_place ? degree : 1 + below(5, 70),
          .others = below(6, 3) == 0 ? 0 : 1 + below(7, 40),
          .degree = degree,
          .keep_short_lists = below(8, 2) == 0,
          .some = below(9, 3) == 0,
          .in_place = in_place,
          .seed = number};
}

using CudaPruneEdges = gpu::CudaTest;

TEST_F(CudaPruneEdges, GeneratedShapes) {
  constexpr int cases = 40;
  for (std::uint64_t number = 0; number < cases && !HasFailure(); ++number)
    if (gpu::is_due(number)) expect_cpu_edges(generated_shape(number));
  RecordProperty("generated_cases", cases);
}

// More candidates than are considered, and than the set of rows holds.
TEST_F(CudaPruneEdges, Hubs) {
  std::uint64_t number = 0;
  for (const unsigned values : {3U, 256U})
    if (gpu::is_due(number++))
      expect_cpu_edges(
          {.rows = 1500, .values = values, .length = 2, .others = 1, .hub = 4000, .degree = 128});
}

TEST_F(CudaPruneEdges, LongCodes) {
  if (gpu::is_due(0)) expect_cpu_edges({.rows = 30, .row_bytes = 8192, .others = 0});
}

TEST_F(CudaPruneEdges, LittleMemory) {
  const PruneCase made({.rows = 40, .hub = 200});
  const std::vector<std::int32_t> expected = made.edges(Context::cpu({.threads = 1}));
  int answers = 0;
  for (std::uint64_t limit = 2000; answers < 3; limit += 2000) {
    const Context context = Context::cuda(0, {.threads = 1, .memory_limit = limit});
    const Error error = gpu::error_of([&] {
      EXPECT_EQ(expected, made.edges(context)) << limit;
      ++answers;
    });
    EXPECT_LE(context.memory_peak(), limit);
    EXPECT_EQ(context.memory_used(), 0U) << limit;
    if (error.code() != ErrorCode::internal)
      EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << error.what();
  }
}

TEST_F(CudaPruneEdges, StopsWhenCancelled) {
  const PruneCase made(PruneShape{});
  Context context = Context::cuda(0);
  context.cancel();
  EXPECT_EQ(gpu::error_of([&] { made.edges(context); }).code(), ErrorCode::cancelled);
  EXPECT_EQ(context.memory_used(), 0U);
}

}  // namespace
}  // namespace nearwise
