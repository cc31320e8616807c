// Local joins under several schedules, and with failing allocations and calls.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "backend/cuda/failing_calls.h"
#include "support/graph_cases.h"
#include "support/join_cases.h"

namespace nearwise {
namespace {

using support::JoinCase;
using support::Kind;
using support::Rows;

// Varies the schedule during its lifetime, hence the order in which locks are taken.
class Schedule {
 public:
  Schedule(std::uint64_t seed, int resident_blocks) : before_(cuda_emulation::options()) {
    cuda_emulation::options().seed = seed;
    cuda_emulation::options().resident_blocks = resident_blocks;
  }
  ~Schedule() { cuda_emulation::options() = before_; }
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

 private:
  const cuda_emulation::Options before_;
};

using CudaJoinSchedules = gpu::CudaTest;

// Partitions and two NN-Descent iterations. The check build has five schedules of its own.
TEST_F(CudaJoinSchedules, GraphsDoNotDependOnTheOrderOfLocks) {
  if (cuda_emulation::checks_accesses()) GTEST_SKIP() << "too slow; BuildsTheGraphOfTheCpu has fewer rows";
  const Rows rows(support::generate(Kind::exact_duplicates, 2000, 4, 7), ElementType::f32);
  graph::Tuning tuning = support::small_partitions(8);
  tuning.list = 8;
  tuning.partition_rows = 50;
  tuning.overlap = 1;
  tuning.sample = 3;
  const KnnGraphOptions options = {.degree = 8};
  const auto build = [&](const Context& context) {
    graph::Builder builder(context, rows, options, tuning);
    builder.join_partitions(context, 0);
    builder.descend(context);
    builder.descend(context);
    return builder.finish();
  };
  const Neighbors expected = build(Context::cpu({.threads = 2}));
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    // Swapping the shared memory of interleaved blocks is slow.
    const Schedule schedule(seed, seed == 5 ? 3 : 1);
    EXPECT_TRUE(support::same_bytes(expected, build(Context::cuda(0)))) << "schedule " << seed;
  }
}

TEST_F(CudaJoinSchedules, LargeGroups) {
  if (cuda_emulation::checks_accesses())
    GTEST_SKIP() << "too slow; generated shapes have groups of two tiles";
  for (const Metric metric : support::every_metric) {
    const support::JoinShape shape = {.kind = Kind::near_duplicates,
                                      .metric = metric,
                                      .rows = 220,
                                      .dim = 20,
                                      .degree = 6,
                                      .groups = 2,
                                      .members = 200};
    const JoinCase made(shape);
    EXPECT_TRUE(support::same_lists(made.lists(Context::cpu({.threads = 1})), made.lists(Context::cuda(0)),
                                    shape.degree))
        << describe(shape);
  }
}

// Scores have no error bound beyond the f32 range: all pairs are evaluated.
class CudaJoinFailures : public gpu::CudaTest, public testing::WithParamInterface<Kind> {
 protected:
  const JoinCase made_{
      {.kind = GetParam(), .rows = 25, .dim = 5, .degree = 3, .groups = 1, .members = 20, .rounds = 1}};
  const std::vector<NeighborEntry> expected_ = made_.lists(Context::cpu({.threads = 1}));

  bool right_answer(const Context& context) const { return made_.lists(context) == expected_; }
};
INSTANTIATE_TEST_SUITE_P(Kinds, CudaJoinFailures, testing::Values(Kind::normal, Kind::huge),
                         [](const auto& info) { return std::string(name(info.param)); });

TEST_P(CudaJoinFailures, EveryAllocationInTurn) {
  gpu::fail_every_allocation(10, [&](const Context& context) { return right_answer(context); });
}

TEST_P(CudaJoinFailures, EveryCallInTurn) {
  gpu::fail_every_call({"cudaMallocFromPoolAsync", "cudaMemcpyAsync", "cudaMemsetAsync", "cudaLaunchKernelEx",
                        "cudaStreamSynchronize"},
                       [&](const Context& context) { return right_answer(context); });
}

}  // namespace
}  // namespace nearwise
