// Joins and deduplications by partitions: the bytes of the result in memory, whatever the data, the threshold
// and the sizes of partitions, chunks and runs.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "plan/join/join_plan_fixture.h"
#include "plan/join/partition_files.h"
#include "support/range_cases.h"

namespace nearwise {
namespace {

using support::Kind;
using support::radius_at_rank;
namespace fs = std::filesystem;

class PartitionJoin : public JoinPlanTest {
 protected:
  // Sizes so small that parts, runs and chunks of partitions end everywhere.
  static void make_small(plan::JoinWork& work, std::size_t partitions) {
    work.block_rows = (work.rows + 1) / 2;
    work.partitions.count = std::min(partitions, work.rows);
    work.partitions.sampled_rows = std::min(work.rows, 16 * work.partitions.count);
    work.partitions.groups = 3;
    work.partitions.chunk_rows = 24;
    work.partitions.part_members = 90;
    work.partitions.run_pairs = 70;
    work.partitions.piece = 200;
  }
  Plan join_small(const std::string& name, float threshold, Metric metric, std::size_t partitions) const {
    plan::JoinWork work = plan::join_work(context(), files(name), threshold,
                                          {.metric = metric, .method = JoinMethod::partitions});
    make_small(work, partitions);
    return plan_of(context(), work);
  }
  Plan dedup_small(const std::string& name, float threshold, const DedupOptions& options,
                   std::size_t partitions) const {
    plan::JoinWork work = plan::dedup_work(context(), files(name), threshold,
                                           {.dedup = options, .method = JoinMethod::partitions});
    make_small(work, partitions);
    return plan_of(context(), work);
  }
  void expect_joined(const RowsView& rows, float threshold, Metric metric, std::size_t partitions) {
    SCOPED_TRACE(fmt::format("{} {} x {}, threshold {}, {} partitions", name(metric), rows.rows(), rows.dim(),
                             threshold, partitions));
    const std::string name = fmt::format("work{}", ++number);
    EXPECT_EQ(run(join_small(name, threshold, metric, partitions), name), joined(rows, threshold, metric));
    fs::remove_all(folder / name);
  }

  std::size_t number = 0;
};

constexpr std::array distances = {Metric::sqeuclidean, Metric::euclidean, Metric::cosine};

// Would catch: a copy too few, pairs found in two partitions or in none, rows of a piece, a part or a chunk
// under the number of another, copies taken for vectors at home.
TEST_F(PartitionJoin, GivesTheBytesOfTheFunction) {
  std::size_t turn = 0;
  for (const Kind kind :
       {Kind::normal, Kind::uniform, Kind::near_duplicates, Kind::exact_duplicates, Kind::integers,
        Kind::identical, Kind::offset_1e6, Kind::zero_rows, Kind::mixed_ranges, Kind::huge})
    for (const Metric metric : distances) {
      const std::size_t dim = turn % 3 == 0 ? 1 : 6;
      const std::array<std::size_t, 2> ranks = {4, 150};
      const support::Rows rows = make_file(kind, 180, dim);
      const float threshold = radius_at_rank(rows, rows, ranks[turn % 2], metric);
      ++turn;
      if (std::isfinite(threshold)) expect_joined(rows, threshold, metric, 3 + turn % 14);
    }
}

TEST_F(PartitionJoin, TypesAndThresholdsAtTheEdge) {
  for (const ElementType type : {ElementType::f16, ElementType::u8, ElementType::i8}) {
    const support::Rows rows = make_file(Kind::near_duplicates, 150, 5, type);
    for (const Metric metric : {Metric::sqeuclidean, Metric::cosine})
      expect_joined(rows, radius_at_rank(rows, rows, 9, metric), metric, 8);
  }
  const support::Rows rows = make_file(Kind::integers, 200, 3);
  for (const Metric metric : distances) {
    expect_joined(rows, 0, metric, 12);
    expect_joined(rows, -1, metric, 12);
    expect_joined(rows, 1e6F, metric, 12);  // every vector is in all partitions
  }
  for (const float threshold : {1.0F, 2.0F, 4.0F}) {  // which many distances are, to the last bit
    expect_joined(rows, threshold, Metric::sqeuclidean, 12);
    expect_joined(rows, support::next_stricter(Metric::sqeuclidean, threshold), Metric::sqeuclidean, 12);
  }
  for (const std::size_t count : {1UL, 2UL, 5UL})  // fewer than partitions, and groups without any
    expect_joined(make_file(Kind::normal, count, 2), 1, Metric::sqeuclidean, 12);
}

// Pairs at exactly the threshold, on either side of a bisector and on it: a lattice, whose partitions are
// symmetric.
TEST_F(PartitionJoin, PairsAtTheThresholdAcrossBisectors) {
  for (const std::size_t dim : {1UL, 2UL}) {
    const std::size_t side = dim == 1 ? 130 : 12;
    Matrix<float> rows(dim == 1 ? side : side * side, dim);
    for (std::size_t row = 0; row < rows.rows(); ++row) {
      rows(row, 0) = static_cast<float>(row % side) / 4;
      if (dim == 2) rows(row, 1) = static_cast<float>(row / side) / 4;
    }
    write_file(rows.view());
    for (const std::size_t partitions : {2UL, 4UL, 9UL})
      for (const float steps : {1.0F, 2.0F, 5.0F})
        expect_joined(rows.view(), steps / 4, Metric::euclidean, partitions);
  }
}

TEST_F(PartitionJoin, DeduplicationGivesTheBytesOfTheFunction) {
  for (const Metric metric : distances) {
    const support::Rows rows = make_file(Kind::near_duplicates, 150, 4);
    const float threshold = radius_at_rank(rows, rows, 5, metric);
    for (const KeptRow keep : {KeptRow::first, KeptRow::medoid})
      for (const DuplicateGrouping grouping : {DuplicateGrouping::star, DuplicateGrouping::connected}) {
        const DedupOptions options = {.metric = metric, .grouping = grouping, .keep = keep};
        const std::string name =
            fmt::format("{}-{}-{}", nearwise::name(metric), nearwise::name(keep), nearwise::name(grouping));
        EXPECT_EQ(run(dedup_small(name, threshold, options, 10), name),
                  deduplicated(rows, threshold, options))
            << name;
      }
  }
}

// With the sizes of the plan itself: one partition holds all rows and many more pairs than memory.
TEST_F(PartitionJoin, PairsMayBeLargerThanMemory) {
  const support::Rows rows = make_file(Kind::identical, 1900, 3);
  memory = 19 * mebibyte;
  const auto expected = joined(rows, 0, Metric::sqeuclidean);
  EXPECT_GT(expected.size(), memory);
  EXPECT_EQ(run(join("join", 0, {.method = JoinMethod::partitions}), "join"), expected);
}

TEST_F(PartitionJoin, TheMemoryLimitIsKept) {
  const support::Rows rows = make_file(Kind::normal, 9000, 24);
  const float threshold = radius_at_rank(rows, rows, 6, Metric::sqeuclidean);
  const auto expected = joined(rows, threshold, Metric::sqeuclidean);
  memory = mebibyte;
  EXPECT_ERROR(join("refused", threshold, {.method = JoinMethod::partitions}), out_of_memory, "");
  for (const std::uint64_t limit : {std::uint64_t{17} * mebibyte + 900 * 1024, 24 * mebibyte}) {
    memory = limit;
    const std::string name = fmt::format("work{}", limit);
    EXPECT_EQ(run(join(name, threshold, {.method = JoinMethod::partitions}), name), expected) << limit;
  }
}

// The sample of a small file is the file, so that the prediction is what is found.
TEST_F(PartitionJoin, ReportsCopiesAndComparisons) {
  const support::Rows rows = make_file(Kind::uniform, 2000, 2);
  const Plan plan = join("work", 0.0004F, {.method = JoinMethod::partitions}, 700);
  const JoinPlanReport before = plan.join_report();
  EXPECT_EQ(before.method, JoinMethod::partitions);
  EXPECT_EQ(before.partitions, 44U);
  EXPECT_FALSE(before.copies.has_value());
  run(plan, "work");
  const JoinPlanReport after = plan.join_report();
  ASSERT_TRUE(after.copies.has_value() && after.comparisons.has_value());
  EXPECT_DOUBLE_EQ(*after.copies, before.predicted_copies);
  EXPECT_DOUBLE_EQ(*after.comparisons, before.predicted_comparisons);
  EXPECT_GT(*after.copies, 1.05);
  EXPECT_LT(*after.copies, 1.6);
  EXPECT_LT(*after.comparisons, 2000.0 * 1999 / 2 / 10);
  EXPECT_GT(plan.remove_work(), 0U);
  EXPECT_FALSE(plan.join_report().copies.has_value());

  const JoinPlanReport pairs = join("pairs", 0.0004F, {.method = JoinMethod::pairs}).join_report();
  EXPECT_EQ(pairs.method, JoinMethod::pairs);
  EXPECT_EQ(pairs.predicted_copies, 1);
  EXPECT_EQ(pairs.predicted_comparisons, 2000.0 * 1999 / 2);
  EXPECT_ERROR(plan_graph(context(), files("graph"), {.degree = 4}).join_report(), invalid_argument,
               "expected one of a join");
}

TEST_F(PartitionJoin, AutomaticTakesTheMethodWithTheLowerCost) {
  make_file(Kind::uniform, 60'000, 2);
  const auto chosen = [&](float threshold, Metric metric, JoinMethod method) {
    return join("work", threshold, {.metric = metric, .method = method}).join_report().method;
  };
  EXPECT_EQ(chosen(1e-7F, Metric::sqeuclidean, JoinMethod::automatic), JoinMethod::partitions);
  EXPECT_EQ(chosen(1e-7F, Metric::sqeuclidean, JoinMethod::pairs), JoinMethod::pairs);
  EXPECT_EQ(chosen(2, Metric::sqeuclidean, JoinMethod::automatic), JoinMethod::pairs);
  EXPECT_EQ(chosen(0.5F, Metric::inner_product, JoinMethod::automatic), JoinMethod::pairs);
  EXPECT_ERROR(chosen(0.5F, Metric::inner_product, JoinMethod::partitions), invalid_argument,
               "plan_threshold_join: method partitions needs a distance, got the metric inner_product");
  make_file(Kind::uniform, 2'000, 2);
  EXPECT_EQ(chosen(1e-7F, Metric::sqeuclidean, JoinMethod::automatic), JoinMethod::pairs);
  EXPECT_EQ(parse_join_method("auto"), JoinMethod::automatic);
  EXPECT_EQ(parse_join_method("partitions"), JoinMethod::partitions);
  EXPECT_ERROR(parse_join_method("cells"), invalid_argument, "auto, partitions, pairs, got 'cells'");
}

TEST_F(PartitionJoin, ResumesAfterAnyTaskAndLoss) {
  const support::Rows rows = make_file(Kind::near_duplicates, 240, 5);
  const DedupOptions options = {.keep = KeptRow::medoid};
  const float threshold = radius_at_rank(rows, rows, 7, Metric::sqeuclidean);
  const auto plan = [&](const std::string& name) { return dedup_small(name, threshold, options, 9); };
  const Plan whole = plan("whole");
  const auto expected = run(whole, "whole");
  ASSERT_EQ(whole.tasks().size(), 2 + 2 + 3 + 2 + 1U);
  EXPECT_FALSE(fs::exists(folder / "whole" / "assign-0000.nw"));
  for (std::size_t done = 1; done < whole.tasks().size(); ++done)
    for (const bool lost : {false, true}) {
      const std::string name = fmt::format("stopped{}{}", done, lost);
      for (std::size_t i = 0; i < done; ++i)
        EXPECT_EQ(plan(name).run_task(context(1), whole.tasks()[i].name), TaskOutcome::done);
      if (lost) fs::remove(folder / name / (whole.tasks()[done - 1].name + ".nw"));
      plan(name).run(context());
      EXPECT_EQ(result(name), expected) << name;
    }
}

// They would have other partitions: those between the old and the new ends would be in no group.
TEST_F(PartitionJoin, AnotherNumberOfGroupsIsAnotherPlan) {
  make_file(Kind::normal, 180, 3);
  plan::JoinWork work = plan::join_work(context(), files("work"), 0.25F, {.method = JoinMethod::partitions});
  make_small(work, 9);
  const Plan begun = plan_of(context(), work);
  for (const char* const task : {"input", "train", "assign-0000", "assign-0001", "compare-0000"})
    begun.run_task(context(), task);
  work.partitions.groups = 2;
  EXPECT_ERROR(plan_of(context(), work).run(context()), invalid_argument, "belongs to another plan");
  begun.run(context());
}

TEST_F(PartitionJoin, VectorsThatAreNotFiniteAreNamed) {
  Matrix<float> rows(90, 2);
  for (std::size_t row = 0; row < 90; ++row) rows(row, 0) = rows(row, 1) = static_cast<float>(row);
  write_file(rows.view());
  const Plan plan = join_small("work", 1, Metric::sqeuclidean, 6);  // whose sample is all rows
  rows(66, 1) = std::nanf("");
  write_file(rows.view());
  plan.run_task(context(), "input");
  EXPECT_ERROR(plan.run_task(context(), "train"), invalid_argument, "row 66");
  EXPECT_ERROR(join("other", 1, {.method = JoinMethod::partitions}), invalid_argument, "row 66");
}

}  // namespace
}  // namespace nearwise
