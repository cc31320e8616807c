// Plans with a call failing in every task: the task is not done, and the same plan resumes to the same bytes.
#include <gtest/gtest.h>

#include <vector>

#include "faults/fault_kit.h"
#include "faults/samples.h"
#include "nearwise/plan_join.h"

namespace nearwise::faults {
namespace {

using testing_io::read_all;
using testing_io::TemporaryFolder;
namespace fs = std::filesystem;

class FaultsOfPlans : public ::testing::Test {
 protected:
  // Tasks run one by one; in each, calls fail until it succeeds.
  void try_tasks(const Plan& plan, const Context& context) const {
    plan.run(context);
    const auto expected = read_all(files.output);
    for (const Fault fault : {Fault::file_call, Fault::allocation, Fault::exhaustion}) {
      fs::remove_all(files.work);
      fs::remove(files.output);
      for (const PlannedTask& task : plan.tasks()) {
        // The task's own files are removed before each attempt, and not its inputs.
        const fs::path saved = folder / "saved";
        if (fs::exists(files.work)) fs::copy(files.work, saved, fs::copy_options::recursive);
        TaskOutcome outcome = TaskOutcome::not_needed;
        const Attempt attempt = {.name = task.name,
                                 .prepare =
                                     [&] {
                                       fs::remove_all(files.work);
                                       if (fs::exists(saved))
                                         fs::copy(saved, files.work, fs::copy_options::recursive);
                                       fs::remove(files.output);
                                     },
                                 .run = [&] { outcome = plan.run_task(context, task.name); },
                                 .expect_before = [&] { EXPECT_EQ(context.memory_used(), 0U); },
                                 .expect_result = [&] { EXPECT_TRUE(plan.is_done(task.name)); }};
        FaultKit(folder.path()).apart(2.5).run(attempt, fault);
        fs::remove_all(saved);
        if (HasFailure()) return;
      }
      EXPECT_EQ(read_all(files.output), expected) << name(fault);
    }
  }

  const TemporaryFolder folder;
  const PlanFiles files = {
      .vectors = folder / "vectors.fbin", .work = folder / "work", .output = folder / "result.nw"};
};

TEST_F(FaultsOfPlans, GraphsByPartitions) {
  write_vectors(files.vectors, vectors().view().slice(0, 200));
  const Context context = Context::cpu({.threads = 2, .memory_limit = std::uint64_t{40} << 20, .seed = 3});
  try_tasks(plan_graph(context, files, {.degree = 4}), context);
}

TEST_F(FaultsOfPlans, GraphsByPairs) {
  write_vectors(files.vectors);
  const Context context = Context::cpu({.threads = 2, .memory_limit = std::uint64_t{11} << 20, .seed = 3});
  try_tasks(plan_graph(context, files, {.degree = 4, .method = GraphPlanMethod::pairs}), context);
}

TEST_F(FaultsOfPlans, Indexes) {
  write_vectors(files.vectors);
  const Context context = Context::cpu({.threads = 2, .memory_limit = std::uint64_t{40} << 20, .seed = 3});
  try_tasks(
      plan_index(context, files, {.index = {.lists = 6, .encoding = pq()}, .calibration = {.queries = 20}}),
      context);
}

TEST_F(FaultsOfPlans, GraphIndexes) {
  write_vectors(files.vectors, vectors().view().slice(0, 120));
  const Context context = Context::cpu({.threads = 2, .memory_limit = std::uint64_t{40} << 20, .seed = 3});
  try_tasks(plan_graph_index(context, files, {.index = {.degree = 16}, .calibration = {.sample = 10}}),
            context);
}

TEST_F(FaultsOfPlans, Joins) {
  write_vectors(files.vectors);
  const Context context = Context::cpu({.threads = 2, .memory_limit = std::uint64_t{18} << 20, .seed = 3});
  try_tasks(plan_threshold_join(context, files, 4.0F), context);
}

TEST_F(FaultsOfPlans, JoinsByPartitions) {
  write_vectors(files.vectors);
  const Context context = Context::cpu({.threads = 2, .memory_limit = std::uint64_t{18} << 20, .seed = 3});
  try_tasks(plan_threshold_join(context, files, 0.5F, {.method = JoinMethod::partitions}), context);
}

TEST_F(FaultsOfPlans, Deduplications) {
  write_vectors(files.vectors);
  const Context context = Context::cpu({.threads = 2, .memory_limit = std::uint64_t{18} << 20, .seed = 3});
  try_tasks(plan_dedup(context, files, 4.0F, {.dedup = {.keep = KeptRow::medoid}}), context);
}

}  // namespace
}  // namespace nearwise::faults
