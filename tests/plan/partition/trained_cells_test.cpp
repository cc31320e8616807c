// Files of cells whose checksums are right and whose numbers are not.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "io/container/container_writer.h"
#include "io/expect_error.h"
#include "io/temporary_folder.h"
#include "nearwise/plan.h"
#include "nearwise/vector_file.h"
#include "plan/partition/trained_cells.h"
#include "plan/tasks/graph_work.h"
#include "support/graph_cases.h"

namespace nearwise::plan {
namespace {

// The file of cells with other numbers in it, whose checksums are right.
class DamagedCells : public ::testing::Test {
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
    work_.shape.compared_cells = 10;
    const Plan plan = plan_of(context, work_);
    plan.run_task(context, sample_name);
    plan.run_task(context, train_name(0));
    const TrainedCells trained(work_, 0);
    metadata = trained.reader.metadata();
    centroids = copy(trained.centroids);
    order = copy(trained.order);
    group_ends = copy(trained.ends_of_groups);
    regions = copy(trained.regions.centres);
    region_ends = copy(trained.regions.ends);
    region_cells = copy(trained.regions.cells);
    ASSERT_GT(regions.rows(), 1U);
  }
  template <typename T>
  static Matrix<T> copy(MatrixView<const T> from) {
    Matrix<T> to(from.rows(), from.cols());
    std::copy_n(from.data(), from.rows() * from.cols(), to.data());
    return to;
  }
  void expect_refused(const std::string& message) const {
    ContainerWriter writer(work_.file_of(train_name(0)), "graph_cells");
    writer.write_metadata(metadata);
    writer.write_section("group_ends", MatrixView<const std::uint64_t>(group_ends));
    writer.write_section("order", MatrixView<const std::uint32_t>(order));
    writer.write_section("centroids", MatrixView<const float>(centroids));
    writer.write_section("regions", MatrixView<const float>(regions));
    writer.write_section("region_ends", MatrixView<const std::uint64_t>(region_ends));
    writer.write_section("region_cells", MatrixView<const std::uint32_t>(region_cells));
    writer.commit();
    EXPECT_ERROR(TrainedCells(work_, 0), corrupt, message);
  }

  nlohmann::json metadata;
  Matrix<float> centroids;
  Matrix<std::uint32_t> order;
  Matrix<std::uint64_t> group_ends;
  Matrix<float> regions;
  Matrix<std::uint64_t> region_ends;
  Matrix<std::uint32_t> region_cells;

 private:
  const testing_io::TemporaryFolder folder_;
  GraphWork work_;
};

TEST_F(DamagedCells, NumberThatIsNoCell) {
  region_cells(0, 0) = static_cast<std::uint32_t>(centroids.rows());
  expect_refused("no cell");
}
TEST_F(DamagedCells, RegionWithoutCells) {
  region_ends(0, 0) = 0;
  expect_refused("region 0");
}
TEST_F(DamagedCells, RegionThatEndsBehindAllCells) {
  region_ends(0, 0) = region_cells.rows() + 1;
  expect_refused("region");
}
TEST_F(DamagedCells, RegionsThatAreNotAllCells) {
  region_ends(region_ends.rows() - 1, 0) -= 1;
  expect_refused("regions");
}
TEST_F(DamagedCells, CellTwiceInTheOrder) {
  order(0, 0) = order(1, 0);
  expect_refused("no place of its own");
}
TEST_F(DamagedCells, GroupsThatAreNotAllCells) {
  group_ends(group_ends.rows() - 1, 0) += 1;
  expect_refused("not all cells");
}
TEST_F(DamagedCells, TooFewCells) {
  centroids = Matrix<float>(1, 8);
  expect_refused("cells in");
}
TEST_F(DamagedCells, MoreCellsPerRowThanPlanned) {
  metadata["overlap"] = 100;
  expect_refused("cells in");
}
TEST_F(DamagedCells, RuleThatIsNoNumber) {
  metadata["reach"] = "far";
  expect_refused("metadata");
}

}  // namespace
}  // namespace nearwise::plan
