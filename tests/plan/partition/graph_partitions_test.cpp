// The partitions of a plan: as few of a row as are predicted to be enough, found among all or among those
// near a super-partition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "graph/partition/partition_search.h"
#include "io/container/container_reader.h"
#include "io/temporary_folder.h"
#include "nearwise/exact.h"
#include "nearwise/plan.h"
#include "nearwise/vector_file.h"
#include "plan/partition/trained_partitions.h"
#include "plan/tasks/graph_work.h"
#include "support/graph_cases.h"
#include "support/timing.h"

namespace nearwise::plan {
namespace {

using testing_io::TemporaryFolder;

constexpr std::uint64_t little_memory = std::uint64_t{40} << 20;

class GraphPartitions : public ::testing::Test {
 protected:
  void make_file(const RowsView& rows) {
    VectorWriter writer(folder / "rows.fbin", rows.type(), rows.dim());
    writer.append(rows);
    writer.commit();
  }
  static Context context() { return Context::cpu({.threads = 2, .memory_limit = little_memory, .seed = 7}); }
  GraphWork work(const std::string& name, const GraphPlanOptions& options = {}) const {
    const PlanFiles files = {
        .vectors = folder / "rows.fbin", .work = folder / name, .output = folder / (name + ".nw")};
    return {.files = files,
            .options = options,
            .shape = shape_of(context(), VectorFile::open(files.vectors).rows(), options)};
  }
  static double predicted(const GraphWork& work, std::size_t pass) {
    return TrainedPartitions(work, pass).reader.metadata().at("predicted_recall").get<double>();
  }

  static double partitions_per_row(const GraphWork& work) {
    const TrainedPartitions trained(work, 0);
    const VectorFile file = VectorFile::open(work.files.vectors);
    std::vector<std::uint32_t> partitions(work.shape.rows * trained.rule.overlap);
    graph::PartitionSearch(context(), trained.centroids, trained.super_partitions,
                           graph::partition_metric(work.options.metric))
        .find(file.rows(), trained.rule, partitions);
    return static_cast<double>(partitions.size() - static_cast<std::size_t>(
                                                       std::ranges::count(partitions, graph::no_partition))) /
           static_cast<double>(work.shape.rows);
  }

  const TemporaryFolder folder;
};

TEST_F(GraphPartitions, NoMoreThanTheRecallTakes) {
  make_file(support::Rows(support::generate(support::Kind::normal, 40'000, 8, 3), ElementType::f32));
  double before = 0;
  for (const double recall : {0.5, 0.8, 0.95}) {
    const GraphWork own = work("recall" + std::to_string(recall), {.target_recall = recall});
    const Plan plan = plan_of(context(), own);
    plan.run(context());
    const TrainedPartitions trained(own, 0);
    const double partitions = partitions_per_row(own);
    EXPECT_GT(partitions, before) << recall;
    EXPECT_TRUE(trained.is_enough);
    before = partitions;
    // What was predicted is what was found: rows that share no partition can meet nowhere else.
    EXPECT_TRUE(plan.report().reached);
    EXPECT_EQ(plan.report().rounds.size(), 1U);
    EXPECT_NEAR(plan.report().recall.value, predicted(own, 0), 0.01) << recall;
  }
  EXPECT_LT(before, 0.8 * static_cast<double>(work("any").shape.overlap));
}

TEST_F(GraphPartitions, SuperPartitionsFindThem) {
  const support::Rows rows(support::generate(support::Kind::normal, 40'000, 8, 3), ElementType::f32);
  const Matrix<float> centroids = [&] {
    Matrix<float> some(400, 8);
    for (std::size_t i = 0; i < 400; ++i) std::memcpy(some.row(i).data(), rows.view().row(i * 100), 32);
    return some;
  }();
  const Context context = this->context();
  constexpr std::size_t overlap = 4;
  const Metric metric = Metric::sqeuclidean;
  const RowsView some = rows.view().slice(0, 5000);
  const graph::SuperPartitions super_partitions =
      graph::SuperPartitions::make(context, centroids, rows.view().slice(5000, 3000), overlap, metric);
  ASSERT_GT(super_partitions.centroids.rows(), 10U);
  const Neighbors exact = graph::PartitionSearch(context, centroids, {}, metric).nearest(some, overlap);
  const Neighbors found =
      graph::PartitionSearch(context, centroids, super_partitions.view(), metric).nearest(some, overlap);
  const Neighbors expected = knn(context, some, centroids, overlap);
  std::size_t same = 0;
  for (std::size_t row = 0; row < 5000; ++row) {
    EXPECT_TRUE(std::ranges::equal(exact.ids.row(row), expected.ids.row(row)));
    for (const Id partition : exact.ids.row(row))
      same += std::ranges::count(found.ids.row(row), partition) != 0 ? 1 : 0;
    // Those that are found are at their distances, in the order of them.
    EXPECT_TRUE(std::ranges::is_sorted(found.distances.row(row)));
    for (std::size_t i = 0; i < overlap; ++i) {
      if (found.ids(row, i) != expected.ids(row, i)) continue;
      EXPECT_EQ(found.distances(row, i), expected.distances(row, i));
    }
  }
  EXPECT_LT(same, 5000 * overlap);  // or rows looked at all partitions
  EXPECT_GT(static_cast<double>(same), 0.94 * 5000 * overlap);
}

TEST_F(GraphPartitions, EverySuperPartitionHasPartitions) {
  // Partitions that are all the same: but one super-partition is nobody's nearest.
  Matrix<float> centroids(300, 4);
  std::fill_n(centroids.data(), 1200, 0.5F);
  const support::Rows rows(support::generate(support::Kind::normal, 1000, 4, 3), ElementType::f32);
  const graph::SuperPartitions super_partitions =
      graph::SuperPartitions::make(context(), centroids, rows.view(), 3, Metric::sqeuclidean);
  ASSERT_GE(super_partitions.centroids.rows(), 1U);
  for (std::size_t super_partition = 0; super_partition < super_partitions.centroids.rows();
       ++super_partition)
    EXPECT_FALSE(super_partitions.view().partitions_of(super_partition).empty());
  std::vector<std::uint32_t> partitions(3000);
  graph::PartitionSearch(context(), centroids, super_partitions.view(), Metric::sqeuclidean)
      .find(rows.view(), {.overlap = 3, .reach = 2}, partitions);
  for (const std::uint32_t partition : partitions) EXPECT_LT(partition, 300U);
}

TEST_F(GraphPartitions, PlansWithSuperPartitionsReachTheRecall) {
  make_file(support::Rows(support::generate(support::Kind::normal, 40'000, 8, 3), ElementType::f32));
  GraphWork own = work("work");
  own.shape.compared_partitions = 50;
  ASSERT_GT(own.shape.partitions, 100U);
  const Plan plan = plan_of(context(), own);
  for (const PlannedTask& task : plan.tasks()) {
    const Context limited = context();
    plan.run_task(limited, task.name);
    EXPECT_LE(limited.memory_peak(), std::max<std::uint64_t>(task.memory_bytes, 1 << 20)) << task.name;
  }
  EXPECT_TRUE(plan.report().reached);
  // Partitions that assignment does not find were not found when it was predicted either.
  EXPECT_EQ(plan.report().rounds.size(), 1U);
  EXPECT_NEAR(plan.report().recall.value, predicted(own, 0), 0.002);
}

TEST_F(GraphPartitions, AsManyAsCostLeast) {
  make_file(support::Rows(support::generate(support::Kind::normal, 40'000, 8, 3), ElementType::f32));
  // A copy of a row costs as much as thousands of pairs, and small partitions need many copies.
  const GraphWork free = work("free");
  GraphWork small = work("small");
  ASSERT_LT(free.shape.min_partitions, small.shape.partitions);
  small.shape.min_partitions = small.shape.partitions;
  for (const GraphWork& own : {free, small}) {
    const Plan plan = plan_of(context(), own);
    plan.run_task(context(), input_name);
    plan.run_task(context(), sample_name);
    plan.run_task(context(), train_name(0));
    EXPECT_TRUE(TrainedPartitions(own, 0).is_enough);
  }
  EXPECT_EQ(TrainedPartitions(small, 0).centroids.rows(), small.shape.partitions);
  EXPECT_LT(TrainedPartitions(free, 0).centroids.rows(), small.shape.partitions);
  EXPECT_LT(partitions_per_row(free), partitions_per_row(small));
}

TEST_F(GraphPartitions, DenseClusterIsParted) {
  // Three quarters of the rows are so near each other that, seeded by distances, one partition would have
  // them all: more than may meet.
  constexpr std::size_t rows = 20'000;
  support::Values values = support::generate(support::Kind::normal, rows, 12, 3);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t i = 0; i < 12; ++i)
      values(row, i) = row % 4 == 0 ? values(row, i) : values(row, i) / 100;
  make_file(support::Rows(values, ElementType::f32));
  const Plan plan = plan_of(context(), work("work", {.target_recall = 0.9}));
  plan.run(context());
  EXPECT_TRUE(plan.report().reached);
  EXPECT_EQ(plan.report().rounds.size(), 1U);
}

TEST_F(GraphPartitions, ManyIdenticalRowsTakeSeconds) {
  support::Values values = support::generate(support::Kind::normal, 60'000, 16, 3);
  for (std::size_t row = 0; row < 60'000; row += 3)
    for (std::size_t i = 0; i < 16; ++i) values(row, i) = 0.25;
  make_file(support::Rows(values, ElementType::f32));
  const double start = support::processor_seconds();
  const Plan plan = plan_of(context(), work("work"));
  plan.run(context());
  EXPECT_LT(support::processor_seconds() - start, 20 * support::sanitizer_slowdown());
  EXPECT_TRUE(plan.report().reached);
}

}  // namespace
}  // namespace nearwise::plan
