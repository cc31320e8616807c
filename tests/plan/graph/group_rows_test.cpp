// Files of assigned rows whose checksums are right and whose numbers are not.
#include "plan/graph/group_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "io/container/container_writer.h"
#include "io/expect_error.h"
#include "io/temporary_folder.h"
#include "nearwise/plan.h"
#include "nearwise/vector_file.h"
#include "support/graph_cases.h"

namespace nearwise::plan {
namespace {

class DamagedAssignment : public ::testing::Test {
 protected:
  void SetUp() override {
    const support::Rows rows(support::generate(support::Kind::normal, 40'000, 8, 3), ElementType::f32);
    work.files = {.vectors = folder_ / "rows.fbin", .work = folder_ / "work", .output = folder_ / "graph.nw"};
    VectorWriter writer(work.files.vectors, ElementType::f32, 8);
    writer.append(rows.view());
    writer.commit();
    work.shape = shape_of(context_, rows.view(), work.options);
    work.shape.batch_rows = 16'384;
    work.shape.groups = 4;
    work.shape.block_rows = 40'000;
    work.shape.blocks = 1;
    const Plan plan = plan_of(context_, work);
    plan.run_task(context_, input_name);
    plan.run_task(context_, sample_name);
    plan.run_task(context_, train_name(0));
    plan.run_task(context_, assign_name(0, 0));
    const ContainerReader reader = ContainerReader::open(work.file_of(assign_name(0, 0)));
    group_ends = copy<std::uint64_t>(reader, "group_ends");
    row_numbers = copy<std::uint32_t>(reader, "rows");
    partitions = copy<std::uint32_t>(reader, "partitions");
    vector_ends = copy<std::uint64_t>(reader, "vector_ends");
    vector_rows = copy<std::uint32_t>(reader, "vector_rows");
    vectors = copy<std::uint8_t>(reader, "vectors");
    ASSERT_GT(group_ends(0, 0), 10U);
    ASSERT_GT(group_ends(1, 0), group_ends(0, 0));
  }
  template <typename T>
  static Matrix<T> copy(const ContainerReader& reader, const char* name) {
    const MatrixView<const T> from = reader.section(name).rows<T>();
    Matrix<T> to(from.rows(), from.cols());
    std::copy_n(from.data(), from.rows() * from.cols(), to.data());
    return to;
  }
  void read_group() const {
    ContainerWriter writer(work.file_of(assign_name(0, 0)), "graph_assignment");
    writer.write_metadata(nlohmann::json::object());
    writer.write_section("group_ends", MatrixView<const std::uint64_t>(group_ends));
    writer.write_section("rows", MatrixView<const std::uint32_t>(row_numbers));
    writer.write_section("partitions", MatrixView<const std::uint32_t>(partitions));
    writer.write_section("vector_ends", MatrixView<const std::uint64_t>(vector_ends));
    writer.write_section("vector_rows", MatrixView<const std::uint32_t>(vector_rows));
    writer.write_section("vectors", MatrixView<const std::uint8_t>(vectors));
    writer.commit();
    GroupRows batches(context_, work, 0, 0);
    while (batches.next()) batches.gather();
  }
  void expect_refused(const std::string& message) const { EXPECT_ERROR(read_group(), corrupt, message); }

  Matrix<std::uint64_t> group_ends;
  Matrix<std::uint32_t> row_numbers;
  Matrix<std::uint32_t> partitions;
  Matrix<std::uint64_t> vector_ends;
  Matrix<std::uint32_t> vector_rows;
  Matrix<std::uint8_t> vectors;
  GraphWork work;

 private:
  const testing_io::TemporaryFolder folder_;
  const Context context_ = Context::cpu({.threads = 2, .memory_limit = std::uint64_t{40} << 20, .seed = 7});
};

TEST_F(DamagedAssignment, WithNothingDamagedIsRead) { EXPECT_NO_THROW(read_group()); }
TEST_F(DamagedAssignment, GroupThatEndsBehindAllRows) {
  group_ends(0, 0) = row_numbers.rows() + 1;
  expect_refused("expected in group 0");
}
TEST_F(DamagedAssignment, FewerPartitionsThanRows) {
  partitions = Matrix<std::uint32_t>(3, 1);
  expect_refused("expected in group 0");
}
TEST_F(DamagedAssignment, NumberThatIsNoRow) {
  row_numbers(0, 0) = 40'000;
  expect_refused("is not a row of the block");
}
TEST_F(DamagedAssignment, RowTwiceInAPartition) {
  row_numbers(1, 0) = row_numbers(0, 0);
  partitions(1, 0) = partitions(0, 0);
  expect_refused("not in the order");
}
TEST_F(DamagedAssignment, PartitionsInAnotherOrder) {
  std::swap(partitions(0, 0), partitions(group_ends(0, 0) - 1, 0));
  expect_refused("not in the order");
}
TEST_F(DamagedAssignment, RowsInMorePartitionsThanPlanned) {
  work.shape.batch_rows = 16;
  for (std::size_t i = 0; i < group_ends(0, 0); ++i) {
    row_numbers(i, 0) = 0;
    partitions(i, 0) = static_cast<std::uint32_t>(i);
  }
  expect_refused("rows of group 0 in more than");
}
TEST_F(DamagedAssignment, VectorsThatEndBehindAll) {
  vector_ends(0, 0) = vector_rows.rows() + 1;
  expect_refused("vectors");
}
TEST_F(DamagedAssignment, VectorsOfAnotherLength) {
  vectors = Matrix<std::uint8_t>(vector_rows.rows(), 31);
  expect_refused("vectors");
}
TEST_F(DamagedAssignment, RowWithoutVector) {
  vector_rows(0, 0) = vector_rows(1, 0);
  expect_refused("has no vector");
}

}  // namespace
}  // namespace nearwise::plan
