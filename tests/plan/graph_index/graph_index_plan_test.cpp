// Graph indexes by plans: what a build in memory saves, in blocks of any size, within the limit, and however
// it is stopped.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "io/expect_error.h"
#include "io/temporary_folder.h"
#include "nearwise/exact.h"
#include "nearwise/plan.h"
#include "nearwise/vector_file.h"
#include "plan/graph_index/graph_index_work.h"
#include "support/error_of.h"
#include "support/knn_cases.h"
#include "support/memory_limits.h"

namespace nearwise {
namespace {

using testing_io::read_all;
using testing_io::TemporaryFolder;
namespace fs = std::filesystem;

class GraphIndexPlan : public ::testing::Test {
 protected:
  // A file of vectors.
  fs::path write(support::Kind kind, std::size_t rows, std::size_t dim, ElementType type) const {
    const support::Rows made(support::generate(kind, rows, dim, 3), type);
    const fs::path path = folder / "rows.npy";
    VectorWriter writer(path, type, dim);
    writer.append(made.view());
    writer.commit();
    return path;
  }
  static Context context(int threads = 2, std::uint64_t memory = std::uint64_t{64} << 20,
                         const char* isa = "") {
    return Context::cpu({.threads = threads, .memory_limit = memory, .seed = 7, .isa = isa});
  }
  PlanFiles files(const fs::path& vectors, const std::string& name) const {
    return {vectors, folder / name, folder / (name + ".nw")};
  }
  // All vectors are in one partition: the k-NN graph is exact.
  plan::GraphIndexWork exact_work(const PlanFiles& of, const GraphIndexPlanOptions& options,
                                  std::size_t block_rows) const {
    const VectorFile file = VectorFile::open(of.vectors);
    plan::GraphIndexWork work = plan::graph_index_work(context(), of, file.rows(), options);
    work.graph.shape.partitions = work.graph.shape.min_partitions = 1;
    work.graph.shape.overlap = 1;
    work.block_rows = block_rows;
    return work;
  }

  const TemporaryFolder folder;
};

struct Case {
  std::string name;
  support::Kind kind;
  ElementType type;
  Metric metric;
  std::size_t rows = 700;
  std::size_t dim = 6;
};

// Would catch: blocks lost or in another order, reverse edges that are missing, codes that depend on the
// block, and connections that depend on where the lists are.
TEST_F(GraphIndexPlan, GivesWhatABuildInMemoryDoes) {
  using support::Kind;
  const std::vector<Case> cases = {
      {"normal", Kind::normal, ElementType::f32, Metric::sqeuclidean},
      {"bytes", Kind::normal, ElementType::u8, Metric::sqeuclidean},
      {"cosine", Kind::near_duplicates, ElementType::f16, Metric::cosine},
      {"inner_product", Kind::normal, ElementType::f32, Metric::inner_product},
      {"duplicates", Kind::exact_duplicates, ElementType::f32, Metric::sqeuclidean},
      {"line", Kind::normal, ElementType::f32, Metric::sqeuclidean, 900, 1},
      {"equal", Kind::identical, ElementType::f32, Metric::sqeuclidean, 300, 3},
      {"few", Kind::normal, ElementType::f32, Metric::sqeuclidean, 5, 3},
      {"one", Kind::normal, ElementType::f32, Metric::sqeuclidean, 1, 3},
  };
  for (const Case& of : cases) {
    const fs::path vectors = write(of.kind, of.rows, of.dim, of.type);
    const GraphIndexPlanOptions options = {.index = {.metric = of.metric, .degree = 16},
                                           .calibration = {.target_recall = 0.9, .sample = 100}};
    GraphIndexOptions exact = options.index;
    exact.graph_recall = 1;
    const VectorFile file = VectorFile::open(vectors);
    const GraphIndex expected =
        GraphIndex::build(Context::cpu({.threads = 2, .seed = 7}), file.rows(), exact, options.calibration);
    save(expected, folder / "expected.nw");
    for (const std::size_t block_rows : {std::size_t{97}, std::size_t{350}, of.rows}) {
      SCOPED_TRACE(of.name + " in blocks of " + std::to_string(block_rows));
      const std::string name = of.name + std::to_string(block_rows);
      const PlanFiles own = files(vectors, name);
      plan_of(context(), exact_work(own, options, block_rows)).run(context());
      EXPECT_EQ(read_all(own.output), read_all(folder / "expected.nw"));
    }
  }
}

TEST_F(GraphIndexPlan, KeepsALittleMemory) {
  const fs::path vectors = write(support::Kind::near_duplicates, 20'000, 16, ElementType::f32);
  const GraphIndexPlanOptions options = {
      .index = {.degree = 32}, .calibration = {.sample = 200}, .provenance = {{"base", "rows"}}};
  const PlanFiles own = files(vectors, "little");
  const auto make = [&](std::uint64_t memory) { return plan_graph_index(context(2, memory), own, options); };
  const Error error = support::error_of([&] { make(1); });
  ASSERT_EQ(error.code(), ErrorCode::out_of_memory) << error.what();
  const std::uint64_t limit = std::ranges::max(support::sizes_in(error.what()));
  const Context limited = context(2, limit);
  const Plan plan = plan_graph_index(limited, own, options);
  EXPECT_LE(plan.memory_bytes(), limit);
  plan.run(limited);
  EXPECT_LE(limited.memory_peak(), limit);
  EXPECT_GE(limited.memory_peak(), limit / 4);
  EXPECT_GT(plan.remove_work(), 20'000U * 32 * 4);

  const GraphIndex index = load_graph_index(Context::cpu({.threads = 2}), own.output);
  EXPECT_EQ(index.provenance().at("base"), "rows");
  ASSERT_TRUE(index.calibration().has_value());
  EXPECT_TRUE(index.calibration()->reached());
}

TEST_F(GraphIndexPlan, IsTheSameHoweverItRuns) {
  const fs::path vectors = write(support::Kind::near_duplicates, 3000, 8, ElementType::f32);
  const GraphIndexPlanOptions options = {.index = {.degree = 16}, .calibration = {.sample = 100}};
  const auto plan = [&](const std::string& name, const Context& own) {
    const VectorFile file = VectorFile::open(vectors);
    plan::GraphIndexWork work = plan::graph_index_work(own, files(vectors, name), file.rows(), options);
    work.block_rows = 800;
    work.nibble_rows = 1000;  // with 4-bit codes
    return plan_of(own, work);
  };
  plan("whole", context()).run(context());
  // One by one, on other threads and instruction sets, and the last of them by run().
  const Plan stopped = plan("stopped", context());
  std::size_t ran = 0;
  for (const PlannedTask& task : stopped.tasks()) {
    if (task.name == "connect") break;
    const Context own =
        context(static_cast<int>(ran % 3) + 1, std::uint64_t{64} << 20, ran % 2 == 0 ? "portable" : "");
    stopped.run_task(own, task.name);
    ++ran;
  }
  plan("stopped", context(1)).run(context(1));
  EXPECT_EQ(read_all(folder / "stopped.nw"), read_all(folder / "whole.nw"));
  // Other options are another plan.
  GraphIndexPlanOptions other = options;
  other.index.degree = 32;
  EXPECT_EQ(support::error_of([&] {
              plan_graph_index(context(), files(vectors, "stopped"), other).run(context());
            }).code(),
            ErrorCode::invalid_argument);

  const GraphIndex index = load_graph_index(context(), folder / "whole.nw");
  EXPECT_EQ(index.bytes_per_vector(), 16 * sizeof(std::int32_t) + 64 + 64);
  const VectorFile file = VectorFile::open(vectors);
  const RowsView queries = file.rows().slice(0, 100);
  const Neighbors found = index.search(context(), queries, 1);
  std::size_t hits = 0;
  for (std::size_t i = 0; i < 100; ++i) hits += found.distances(i, 0) == 0 ? 1 : 0;
  EXPECT_GE(hits, 95U);
}

// Would catch: intermediate files that are left behind, and a damaged one that is used.
TEST_F(GraphIndexPlan, MakesLostFilesAgain) {
  const fs::path vectors = write(support::Kind::normal, 900, 4, ElementType::f32);
  const GraphIndexPlanOptions options = {.index = {.degree = 16}, .calibration = {.sample = 50}};
  const PlanFiles own = files(vectors, "lost");
  const Plan plan = plan_of(context(), exact_work(own, options, 300));
  plan.run(context());
  const auto expected = read_all(own.output);
  for (const auto& entry : fs::directory_iterator(own.work))
    EXPECT_FALSE(entry.path().filename().native().starts_with("prune-")) << entry.path();
  for (const char* const lost : {"codes", "edges", "connect", "entries"}) {
    fs::remove(own.output);
    fs::remove(own.work / (std::string(lost) + ".nw"));
    plan.run(context());
    EXPECT_EQ(read_all(own.output), expected) << lost;
  }
  auto bytes = read_all(own.work / "codes.nw");
  bytes[bytes.size() / 2] ^= std::byte{1};
  testing_io::write_all(own.work / "codes.nw", bytes);
  fs::remove(own.output);
  std::size_t repaired = 0;
  plan.run(context(),
           [&](const PlannedTask&, TaskOutcome outcome) { repaired += outcome == TaskOutcome::repaired; });
  EXPECT_EQ(repaired, 1U);
  EXPECT_EQ(read_all(own.output), expected);
}

TEST_F(GraphIndexPlan, RefusesWhatCannotBe) {
  const fs::path vectors = write(support::Kind::normal, 300, 4, ElementType::f32);
  const PlanFiles own = files(vectors, "no");
  const auto refused = [&](const GraphIndexPlanOptions& options) {
    return support::error_of([&] { plan_graph_index(context(), own, options); });
  };
  const std::vector<Id> ids(300, 1);
  EXPECT_EQ(refused({.index = {.degree = 20}}).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(refused({.index = {.graph_recall = 1}}).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(refused({.index = {.ids = ids}}).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(refused({.calibration = {.target_recall = 2}}).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(refused({.calibration = {.sample = 0}}).code(), ErrorCode::invalid_argument);
  const VectorFile file = VectorFile::open(vectors);
  EXPECT_EQ(refused({.calibration = {.queries = file.rows()}}).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(support::error_of([&] { plan_graph_index(Context::cpu(), own); }).code(),
            ErrorCode::invalid_argument);
  EXPECT_FALSE(fs::exists(own.work));

  Matrix<float> bad(300, 4);
  std::fill_n(bad.data(), 1200, 0.5F);
  bad(123, 2) = std::numeric_limits<float>::quiet_NaN();
  VectorWriter writer(folder / "bad.npy", ElementType::f32, 4);
  writer.append(bad);
  writer.commit();
  EXPECT_ERROR(plan_graph_index(context(), files(folder / "bad.npy", "bad")).run(context()), invalid_argument,
               "123");
}

}  // namespace
}  // namespace nearwise
