// Joins and deduplications over files: the bytes of a save of the result in memory, in any blocks, within a
// memory limit and after any interruption.
#include "nearwise/plan_join.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "plan/join/join_plan_fixture.h"
#include "support/error_of.h"
#include "support/memory_limits.h"
#include "support/range_cases.h"

namespace nearwise {
namespace {

using support::Kind;
using support::radius_at_rank;
namespace fs = std::filesystem;

class JoinPlan : public JoinPlanTest {};

// Would catch: pairs of two blocks that are lost or found twice, numbers of a block instead of the file, rows
// in another order, a last block that is shorter.
TEST_F(JoinPlan, GivesTheBytesOfTheFunction) {
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::u8})
    for (const Metric metric : support::every_metric) {
      const support::Rows rows = make_file(Kind::near_duplicates, 211, 6, type);
      const float threshold = radius_at_rank(rows, rows, 9, metric);
      const auto expected = joined(rows, threshold, metric);
      for (const std::size_t block_rows : {211UL, 106UL, 60UL}) {
        const std::string name =
            fmt::format("{}-{}-{}", nearwise::name(type), nearwise::name(metric), block_rows);
        const Plan plan = join(name, threshold, {.metric = metric}, block_rows);
        const std::size_t blocks = (211 + block_rows - 1) / block_rows;
        EXPECT_EQ(plan.tasks().size(), 2 + blocks * (blocks + 1) / 2);
        EXPECT_EQ(run(plan, name), expected) << name;
      }
      const SavedPairs saved = load_pairs(folder / "expected.nw");
      EXPECT_TRUE(support::same(oracle::pairs(rows, threshold, metric), saved.pairs));
      EXPECT_FALSE(saved.pairs.ids.empty());
    }
}

// Three keeps for each of four metrics: every one in both groupings over the types.
TEST_F(JoinPlan, DeduplicationGivesTheBytesOfTheFunction) {
  std::size_t number = 0;
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::u8}) {
    ++number;
    for (const Metric metric : support::every_metric) {
      const support::Rows rows = make_file(Kind::near_duplicates, 150, 4, type);
      const float threshold = radius_at_rank(rows, rows, 5, metric);
      std::vector<double> scores(rows.view().rows());  // with ties
      for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = static_cast<double>(i * 37 % 11) / 7;
      for (const KeptRow keep : {KeptRow::first, KeptRow::medoid, KeptRow::scored}) {
        const DuplicateGrouping grouping =
            ++number % 2 == 0 ? DuplicateGrouping::star : DuplicateGrouping::connected;
        DedupOptions options = {.metric = metric, .grouping = grouping, .keep = keep};
        if (keep == KeptRow::scored) options.scores = scores;
        const auto expected = deduplicated(rows, threshold, options);
        EXPECT_LT(load_deduplication(folder / "expected.nw").deduplication.kept.size(), 150U);
        const std::string name = fmt::format("{}-{}-{}-{}", nearwise::name(type), nearwise::name(metric),
                                             nearwise::name(grouping), nearwise::name(keep));
        EXPECT_EQ(run(dedup(name, threshold, {.dedup = options}, 60), name), expected) << name;
      }
    }
  }
}

// Many more pairs than memory holds: joins and lists in parts. All rows are the same.
TEST_F(JoinPlan, PairsMayBeLargerThanMemory) {
  const support::Rows rows = make_file(Kind::identical, 2500, 3);
  memory = 19 * mebibyte;
  const auto expected = joined(rows, 0, Metric::sqeuclidean);
  EXPECT_GT(expected.size(), 35 * mebibyte);
  EXPECT_ERROR(threshold_join(context(), rows, 0), out_of_memory, "smaller radius");
  EXPECT_EQ(run(join("join", 0, {}), "join"), expected);
  EXPECT_EQ(run(dedup("dedup", 0, {}, 1500), "dedup"), deduplicated(rows, 0, {}));
  EXPECT_EQ(load_deduplication(folder / "dedup.nw").deduplication.pairs, 2500U * 2499 / 2);
}

// Blocks by the limit, which the plan names where it is too small.
TEST_F(JoinPlan, TheMemoryLimitIsKept) {
  const support::Rows rows = make_file(Kind::normal, 9000, 24);
  const float threshold = radius_at_rank(rows, rows, 12, Metric::sqeuclidean);
  const auto expected = joined(rows, threshold, Metric::sqeuclidean);
  memory = mebibyte;
  const Error error = support::error_of([&] { join("refused", threshold, {}); });
  EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
  const std::uint64_t least = support::sizes_in(error.what()).back();
  std::size_t most_tasks = 0;
  for (const std::uint64_t limit : {least + 1024, 19 * mebibyte, 64 * mebibyte}) {
    memory = limit;
    const std::string name = fmt::format("work{}", limit);
    const Plan plan = join(name, threshold, {});
    EXPECT_LE(plan.least_memory_bytes(), least + 1024);
    most_tasks = std::max(most_tasks, plan.tasks().size());
    EXPECT_EQ(run(plan, name), expected) << limit;
  }
  EXPECT_GT(most_tasks, 10U);
}

TEST_F(JoinPlan, ResumesAfterAnyTaskAndLoss) {
  const support::Rows rows = make_file(Kind::near_duplicates, 300, 5);
  const float threshold = radius_at_rank(rows, rows, 7, Metric::cosine);
  const DedupPlanOptions options = {.dedup = {.metric = Metric::cosine, .keep = KeptRow::medoid}};
  const auto plan = [&](const std::string& name) { return dedup(name, threshold, options, 110); };
  const Plan whole = plan("whole");
  const auto expected = run(whole, "whole");
  ASSERT_EQ(whole.tasks().size(), 1 + 6 + 3 + 1U);
  for (std::size_t done = 1; done < whole.tasks().size(); ++done)
    for (const bool lost : {false, true}) {
      const std::string name = fmt::format("stopped{}{}", done, lost);
      for (std::size_t i = 0; i < done; ++i)
        EXPECT_EQ(plan(name).run_task(context(1), whole.tasks()[i].name), TaskOutcome::done);
      if (lost) fs::remove(folder / name / (whole.tasks()[done - 1].name + ".nw"));
      std::size_t made = 0;
      plan(name).run(context(), [&](const PlannedTask&, TaskOutcome outcome) {
        made += outcome == TaskOutcome::done ? 1 : 0;
      });
      EXPECT_EQ(made, whole.tasks().size() - done + (lost ? 1 : 0));
      EXPECT_EQ(result(name), expected) << name;
    }
  std::size_t bytes = expected.size();
  for (const auto& entry : fs::directory_iterator(folder / "whole"))
    if (entry.path().extension() == ".nw") bytes += entry.file_size();
  EXPECT_GT(whole.disk_bytes(), bytes / 2);
  EXPECT_LT(whole.disk_bytes(), bytes * 2);
  EXPECT_GT(whole.remove_work(), 0U);
  EXPECT_EQ(plan("whole").run_task(context(), "finish"), TaskOutcome::done_before);
}

TEST_F(JoinPlan, Refusals) {
  support::Rows rows = make_file(Kind::normal, 50, 4);
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float threshold : {infinity, -infinity, std::nanf("")})
    EXPECT_ERROR(plan_threshold_join(context(), files("work"), threshold), invalid_argument,
                 "plan_threshold_join: expected a finite threshold");
  EXPECT_ERROR(plan_threshold_join(Context::cpu(), files("work"), 1), invalid_argument, "memory limit");
  EXPECT_ERROR(plan_dedup(context(), {.vectors = vectors, .work = {}, .output = {}}, 1), invalid_argument,
               "plan_dedup: expected a work folder and an output");
  const std::vector<double> scores(49);
  EXPECT_ERROR(
      plan_dedup(context(), files("work"), 1, {.dedup = {.keep = KeptRow::scored, .scores = scores}}),
      invalid_argument, "a score for each of the 50 rows expected, got 49");
  run(join("work", 1, {}), "work");
  EXPECT_ERROR(join("work", 2, {}).run(context()), invalid_argument, "belongs to another plan");
  std::vector<double> other(50);
  run(dedup("scored", 1, {.dedup = {.keep = KeptRow::scored, .scores = other}}), "scored");
  other[3] = 1;
  EXPECT_ERROR(dedup("scored", 1, {.dedup = {.keep = KeptRow::scored, .scores = other}}).run(context()),
               invalid_argument, "belongs to another plan");

  // By its number in the file: of the sample of the plan, and of all rows.
  vectors = folder / "nan.npy";
  const auto write = [&](RowsView written) {
    VectorWriter writer(vectors, ElementType::f32, 4);
    writer.append(written);
    writer.commit();
  };
  write(rows);
  const Plan plan = join("nan", 1, {}, 20);
  EXPECT_ERROR(plan.run_task(context(), "join-0000-0001"), invalid_argument, "depends on");
  std::vector<float> values(50 * 4, 1.0F);
  values[33 * 4 + 2] = std::nanf("");
  write(MatrixView<const float>(values.data(), 50, 4));
  EXPECT_ERROR(join("nan", 1, {}), invalid_argument, "row 33");
  plan.run_task(context(), "input");
  plan.run_task(context(), "join-0000-0000");
  EXPECT_ERROR(plan.run_task(context(), "join-0000-0001"), invalid_argument, "row 33");
}

}  // namespace
}  // namespace nearwise
