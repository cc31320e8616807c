// Counts the steps of the search for additive codes on the emulated device: choices of one code, and steps
// repeated because a sum left the 16-bit range. tools/gpu_estimate.py reads the recorded properties.
//
// Catches steps for settled codes, descents that continue when all codes are settled, scales that let sums
// saturate.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/cuda/cuda_test.h"
#include "cuda_emulation/control.h"
#include "support/additive_cases.h"

namespace nearwise {
namespace {

using cuda_emulation::Collective;
using cuda_emulation::CollectiveCount;

class AdditivePaths : public gpu::CudaTest, public testing::WithParamInterface<std::size_t> {};
// With the byte for the norm, codes of 64 and 128 bits.
INSTANTIATE_TEST_SUITE_P(Codebooks, AdditivePaths, testing::Values(7, 15),
                         [](const auto& instance) { return fmt::format("codebooks{}", instance.param); });

TEST_P(AdditivePaths, AreCounted) {
  if (cuda_emulation::checks_accesses()) GTEST_SKIP() << "paths do not depend on the checks";
  const Context cpu = Context::cpu({.threads = 2});
  const support::Rows rows(support::generate(support::Kind::normal, 1000, 16, 1), ElementType::f32);
  const AdditiveQuantizer quantizer =
      AdditiveQuantizer::train(cpu, rows, {.codebooks = GetParam(), .rounds = 2, .iterations = 2});
  const support::Rows encoded(support::generate(support::Kind::normal, 24, 16, 2), ElementType::f32);
  const AdditiveEncodeOptions options = {.iterations = 16, .passes = 4, .perturbed = 4};
  cuda_emulation::reset_collective_counts();
  EXPECT_TRUE(support::same(support::to_vector(quantizer.encode(cpu, encoded, options)),
                            quantizer.encode(Context::cuda(0), encoded, options)));

  std::vector<CollectiveCount> votes = cuda_emulation::collective_counts();
  std::erase_if(votes, [](const CollectiveCount& count) {
    return count.collective != Collective::any || !count.file.ends_with("warp/code_search.cuh");
  });
  ASSERT_EQ(votes.size(), 1U) << "whether a sum left the range, once in a step";
  const std::uint64_t steps = votes[0].times;
  const std::uint64_t saturated = votes[0].not_zero;
  // The start and the first pass of every descent choose every code.
  const std::uint64_t of_passes = encoded.rows() * GetParam() * options.iterations;
  EXPECT_GT(steps, of_passes);
  EXPECT_LT(steps, of_passes * options.passes * 9 / 10);
  EXPECT_LT(saturated, steps / 20);
  RecordProperty("rows", std::to_string(encoded.rows()));
  RecordProperty("iterations", std::to_string(options.iterations));
  RecordProperty("steps", std::to_string(steps));
  RecordProperty("saturated", std::to_string(saturated));
}

}  // namespace
}  // namespace nearwise
