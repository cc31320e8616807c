// Exact search over several CUDA devices: ids and distances equal the CPU's, bit for bit.
#include "nearwise/sharded.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/cuda/cuda_test.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::KnnCase;
using support::Problem;

// The given number of contexts, over all devices; a machine with fewer devices uses some several times.
std::vector<Context> contexts_on_devices(std::size_t count) {
  std::vector<Context> contexts;
  for (std::size_t i = 0; i < count; ++i)
    contexts.push_back(Context::cuda(static_cast<int>(i) % gpu::device_count(), {.threads = 1}));
  return contexts;
}

KnnCase generated_case(std::uint64_t number) {
  constexpr std::array<std::size_t, 5> dims = {1, 3, 8, 17, 30};
  const Random random = support::random_for(7000 + number, support::Purpose::shapes);
  const auto choose = [&](std::uint64_t draw, const auto& from) {
    return from[static_cast<std::size_t>(random.below(draw, from.size()))];
  };
  const std::size_t rows = 1 + static_cast<std::size_t>(random.below(0, number % 3 == 0 ? 12 : 80));
  const std::array<std::size_t, 6> ks = {1, 2, 10, 26, rows, rows + 3};
  KnnCase made;
  made.recipe = {.kind = support::every_kind[number % support::every_kind.size()],
                 .rows = rows,
                 .queries = 1 + static_cast<std::size_t>(random.below(1, 9)),
                 .dim = choose(2, dims),
                 .base_type = choose(3, support::every_type),
                 .query_type = choose(4, support::every_type),
                 .seed = 7000 + number};
  made.metric = choose(5, support::every_metric);
  made.k = choose(6, ks);
  return made;
}

class CudaSharded : public gpu::CudaTest, public testing::WithParamInterface<int> {};

TEST_P(CudaSharded, FiftyShapes) {
  const auto devices = static_cast<std::size_t>(GetParam());
  const std::vector<Context> contexts = contexts_on_devices(devices);
  const Context host = Context::cpu({.threads = 1});
  constexpr int cases = 50;
  for (std::uint64_t number = 0; number < cases && !HasFailure(); ++number) {
    if (!gpu::is_due(number)) continue;
    const KnnCase knn_case = generated_case(50 * devices + number);
    SCOPED_TRACE(describe(knn_case));
    const Problem problem = support::make_problem(knn_case.recipe);
    const KnnOptions options = support::options_for(knn_case);
    const ExactOptions exact = {.metric = knn_case.metric};
    const oracle::Answer expected =
        support::as_expected(knn(host, problem.queries, problem.base, knn_case.k, options));
    const auto expect_same = [&](const auto& index) {
      EXPECT_TRUE(support::same(
          expected, index.search(host, problem.queries, knn_case.k, {.short_rows = options.short_rows})));
    };
    if (number % 4 == 0)
      expect_same(replicate_exact(contexts, problem.base, exact));
    else if (number % 4 == 1 && devices % 2 == 0)
      expect_same(shard_and_replicate_exact(contexts, 2, problem.base, exact));
    else
      expect_same(shard_exact(contexts, problem.base, exact));
  }
  RecordProperty("generated_cases", cases);
}

INSTANTIATE_TEST_SUITE_P(Devices, CudaSharded, testing::Values(1, 2, 3, 8));

}  // namespace
}  // namespace nearwise
