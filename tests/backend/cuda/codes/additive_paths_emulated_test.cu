// How many steps the search for additive codes takes, counted on the emulated device: choices of one code, and those that are
// made again because a sum left the range of 16 bits. tools/gpu_estimate.py reads what is recorded here.
//
// What these would catch: steps for codes that are settled, descents that go on when all are, scales that let sums saturate.
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
using cuda_emulation::Meeting;

class AdditivePaths : public gpu::CudaTest, public testing::WithParamInterface<std::size_t> {};
// With the byte for the length, codes of 64 and 128 bits.
INSTANTIATE_TEST_SUITE_P(Codebooks, AdditivePaths, testing::Values(7, 15),
                         [](const auto& instance) { return fmt::format("codebooks{}", instance.param); });

TEST_P(AdditivePaths, AreCounted) {
  if (cuda_emulation::checks_accesses()) GTEST_SKIP() << "the ways are the same without checks";
  const Context cpu = Context::cpu({.threads = 2});
  const support::Rows rows(support::generate(support::Kind::normal, 1000, 16, 1), ElementType::f32);
  const AdditiveQuantizer quantizer =
      AdditiveQuantizer::train(cpu, rows, {.codebooks = GetParam(), .rounds = 2, .iterations = 2});
  const support::Rows encoded(support::generate(support::Kind::normal, 24, 16, 2), ElementType::f32);
  const AdditiveEncodeOptions options = {.iterations = 16, .passes = 4, .perturbed = 4};
  cuda_emulation::forget_meetings();
  EXPECT_TRUE(support::same(support::to_vector(quantizer.encode(cpu, encoded, options)),
                            quantizer.encode(Context::cuda(0), encoded, options)));

  std::vector<Meeting> votes = cuda_emulation::meetings();
  std::erase_if(votes, [](const Meeting& meeting) {
    return meeting.collective != Collective::any || !meeting.file.ends_with("warp/code_search.cuh");
  });
  ASSERT_EQ(votes.size(), 1U) << "whether a sum left the range, once in a step";
  const std::uint64_t steps = votes[0].times;
  const std::uint64_t saturated = votes[0].not_zero;
  // The start, and the first pass of every descent, choose every code.
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
