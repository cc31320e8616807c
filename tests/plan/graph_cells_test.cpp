// The cells of a plan: as few of a row as are foreseen to be enough, found one by one or by an inverted file.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "io/container_reader.h"
#include "io/temporary_folder.h"
#include "nearwise/exact.h"
#include "nearwise/plan.h"
#include "nearwise/vector_file.h"
#include "plan/cell_search.h"
#include "plan/graph_work.h"
#include "plan/trained_cells.h"
#include "support/graph_cases.h"
#include "support/timing.h"

namespace nearwise::plan {
namespace {

using testing_io::TemporaryFolder;

constexpr std::uint64_t little_memory = std::uint64_t{40} << 20;

class GraphCells : public ::testing::Test {
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
  static double foreseen(const GraphWork& work, std::size_t pass) {
    return TrainedCells(work, pass).reader.metadata().at("foreseen_recall").get<double>();
  }

  static double cells_per_row(const GraphWork& work) {
    std::uint64_t members = 0;
    for (std::size_t block = 0; block < work.shape.blocks; ++block)
      members += ContainerReader::open(work.file_of(assign_name(0, block)))
                     .section("rows")
                     .rows<std::uint32_t>()
                     .rows();
    return static_cast<double>(members) / static_cast<double>(work.shape.rows);
  }

  const TemporaryFolder folder;
};

TEST_F(GraphCells, NoMoreThanTheRecallTakes) {
  make_file(support::Rows(support::generate(support::Kind::normal, 40'000, 8, 3), ElementType::f32));
  double before = 0;
  for (const double recall : {0.5, 0.8, 0.95}) {
    const GraphWork own = work("recall" + std::to_string(recall), {.recall = recall});
    const Plan plan = plan_of(context(), own);
    plan.run(context());
    const TrainedCells trained(own, 0);
    const double cells = cells_per_row(own);
    EXPECT_GT(cells, before) << recall;
    EXPECT_TRUE(trained.is_enough);
    before = cells;
    // What was foreseen is what was found: rows that share no cell can meet nowhere else.
    EXPECT_TRUE(plan.report().reached);
    EXPECT_EQ(plan.report().rounds.size(), 1U);
    EXPECT_NEAR(plan.report().recall.value, foreseen(own, 0), 0.01) << recall;
  }
  EXPECT_LT(before, 0.8 * static_cast<double>(work("any").shape.overlap));
}

TEST_F(GraphCells, AnInvertedFileFindsThem) {
  const support::Rows rows(support::generate(support::Kind::normal, 40'000, 8, 3), ElementType::f32);
  make_file(rows);
  const Matrix<float> centroids = [&] {
    Matrix<float> some(400, 8);
    for (std::size_t i = 0; i < 400; ++i) std::memcpy(some.row(i).data(), rows.view().row(i * 100), 32);
    return some;
  }();
  GraphWork own = work("work");
  const Context context = this->context();
  constexpr std::size_t overlap = 4;
  const RowsView some = rows.view().slice(0, 5000);
  std::vector<std::uint32_t> exact(5000 * overlap);
  std::vector<std::uint32_t> found(5000 * overlap);
  own.shape.searched_cells = 400;
  CellSearch(context, own, centroids).find(some, {.overlap = overlap, .reach = 3}, exact);
  own.shape.searched_cells = 50;
  CellSearch(context, own, centroids).find(some, {.overlap = overlap, .reach = 3}, found);
  const Neighbors nearest = knn(context, some, centroids, 1);
  std::size_t same = 0;
  std::size_t all = 0;
  for (std::size_t row = 0; row < 5000; ++row) {
    EXPECT_EQ(exact[row * overlap], static_cast<std::uint32_t>(nearest.ids(row, 0)));
    const auto of_row = std::span(found).subspan(row * overlap, overlap);
    EXPECT_NE(of_row[0], no_row);
    for (std::size_t i = 0; i < overlap; ++i) {
      const std::uint32_t cell = exact[row * overlap + i];
      all += cell != no_row ? 1 : 0;
      same += cell != no_row && std::ranges::find(of_row, cell) != of_row.end() ? 1 : 0;
    }
  }
  EXPECT_NE(exact, found);  // or there was no inverted file
  EXPECT_GT(static_cast<double>(same), 0.85 * static_cast<double>(all));
}

TEST_F(GraphCells, PlansWithAnInvertedFileReachTheRecall) {
  make_file(support::Rows(support::generate(support::Kind::normal, 40'000, 8, 3), ElementType::f32));
  GraphWork own = work("work");
  own.shape.searched_cells = 50;
  ASSERT_GT(own.shape.cells, 100U);
  const Plan plan = plan_of(context(), own);
  for (const PlannedTask& task : plan.tasks()) {
    const Context limited = context();
    plan.run_task(limited, task.name);
    EXPECT_LE(limited.memory_peak(), std::max<std::uint64_t>(task.memory_bytes, 1 << 20)) << task.name;
  }
  EXPECT_TRUE(plan.report().reached);
  // Cells that assignment does not find were not found when it was foreseen either.
  EXPECT_EQ(plan.report().rounds.size(), 1U);
  EXPECT_NEAR(plan.report().recall.value, foreseen(own, 0), 0.002);
}

TEST_F(GraphCells, ManyIdenticalRowsTakeSeconds) {
  support::Values values = support::generate(support::Kind::normal, 60'000, 16, 3);
  for (std::size_t row = 0; row < 60'000; row += 3)
    for (std::size_t i = 0; i < 16; ++i) values(row, i) = 0.25;
  make_file(support::Rows(values, ElementType::f32));
  const double start = support::processor_seconds();
  const Plan plan = plan_of(context(), work("work"));
  plan.run(context());
  EXPECT_LT(support::processor_seconds() - start, 20 * support::sanitizer_slowdown);
  EXPECT_TRUE(plan.report().reached);
}

}  // namespace
}  // namespace nearwise::plan
