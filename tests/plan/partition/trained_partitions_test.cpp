// Files of partitions whose checksums are right and whose numbers are not.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "io/container/container_writer.h"
#include "io/expect_error.h"
#include "io/temporary_folder.h"
#include "nearwise/plan.h"
#include "nearwise/vector_file.h"
#include "plan/partition/trained_partitions.h"
#include "plan/tasks/graph_work.h"
#include "support/graph_cases.h"

namespace nearwise::plan {
namespace {

// The file of partitions with other numbers in it, whose checksums are right.
class DamagedPartitions : public ::testing::Test {
 protected:
  void SetUp() override {
    const support::Rows rows(support::generate(support::Kind::normal, 20'000, 8, 3), ElementType::f32);
    const PlanFiles files = {
        .vectors = folder_ / "rows.fbin", .work = folder_ / "work", .output = folder_ / "graph.nw"};
    VectorWriter writer(files.vectors, ElementType::f32, 8);
    writer.append(rows.view());
    writer.commit();
    const Context context = Context::cpu({.threads = 2, .memory_limit = std::uint64_t{40} << 20, .seed = 7});
    work_.files = files;
    work_.shape = shape_of(context, rows.view(), work_.options);
    work_.shape.compared_partitions = 10;
    const Plan plan = plan_of(context, work_);
    plan.run_task(context, input_name);
    plan.run_task(context, sample_name);
    plan.run_task(context, train_name(0));
    const TrainedPartitions trained(work_, 0);
    metadata = trained.reader.metadata();
    centroids = copy(trained.centroids);
    order = copy(trained.order);
    group_ends = copy(trained.group_ends);
    super_partitions = copy(trained.super_partitions.centroids);
    super_partition_ends = copy(trained.super_partitions.ends);
    super_partition_members = copy(trained.super_partitions.partitions);
    ASSERT_GT(super_partitions.rows(), 1U);
  }
  template <typename T>
  static Matrix<T> copy(MatrixView<const T> from) {
    Matrix<T> to(from.rows(), from.cols());
    std::copy_n(from.data(), from.rows() * from.cols(), to.data());
    return to;
  }
  void expect_refused(const std::string& message) const {
    ContainerWriter writer(work_.file_of(train_name(0)), "graph_partitions");
    writer.write_metadata(metadata);
    writer.write_section("group_ends", MatrixView<const std::uint64_t>(group_ends));
    writer.write_section("order", MatrixView<const std::uint32_t>(order));
    writer.write_section("centroids", MatrixView<const float>(centroids));
    writer.write_section("super_partitions", MatrixView<const float>(super_partitions));
    writer.write_section("super_partition_ends", MatrixView<const std::uint64_t>(super_partition_ends));
    writer.write_section("super_partition_members", MatrixView<const std::uint32_t>(super_partition_members));
    writer.commit();
    EXPECT_ERROR(TrainedPartitions(work_, 0), corrupt, message);
  }

  nlohmann::json metadata;
  Matrix<float> centroids;
  Matrix<std::uint32_t> order;
  Matrix<std::uint64_t> group_ends;
  Matrix<float> super_partitions;
  Matrix<std::uint64_t> super_partition_ends;
  Matrix<std::uint32_t> super_partition_members;

 private:
  const testing_io::TemporaryFolder folder_;
  GraphWork work_;
};

TEST_F(DamagedPartitions, NumberThatIsNoPartition) {
  super_partition_members(0, 0) = static_cast<std::uint32_t>(centroids.rows());
  expect_refused("no partition");
}
TEST_F(DamagedPartitions, SuperPartitionWithoutPartitions) {
  super_partition_ends(0, 0) = 0;
  expect_refused("super-partition 0");
}
TEST_F(DamagedPartitions, SuperPartitionThatEndsBehindAllPartitions) {
  super_partition_ends(0, 0) = super_partition_members.rows() + 1;
  expect_refused("super-partition");
}
TEST_F(DamagedPartitions, SuperPartitionsThatAreNotAllPartitions) {
  super_partition_ends(super_partition_ends.rows() - 1, 0) -= 1;
  expect_refused("super-partition");
}
TEST_F(DamagedPartitions, PartitionTwiceInTheOrder) {
  order(0, 0) = order(1, 0);
  expect_refused("not in the order exactly once");
}
TEST_F(DamagedPartitions, GroupsThatAreNotAllPartitions) {
  group_ends(group_ends.rows() - 1, 0) += 1;
  expect_refused("do not hold all partitions");
}
TEST_F(DamagedPartitions, TooFewPartitions) {
  centroids = Matrix<float>(1, 8);
  expect_refused("partitions in");
}
TEST_F(DamagedPartitions, MorePartitionsPerRowThanPlanned) {
  metadata["overlap"] = 100;
  expect_refused("partitions in");
}
TEST_F(DamagedPartitions, RuleThatIsNoNumber) {
  metadata["reach"] = "far";
  expect_refused("metadata");
}
TEST_F(DamagedPartitions, ReachThatNoTrainingChooses) {
  for (const double reach : {0.5, 3.001, 1e300}) {
    metadata["reach"] = reach;
    expect_refused("a reach of 1 to 3 expected");
  }
}

}  // namespace
}  // namespace nearwise::plan
