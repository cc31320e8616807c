// Graphs by pairs of shards: what is particular to them. graph_plan_test.cpp has what all plans of graphs
// keep.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "io/expect_error.h"
#include "io/temporary_folder.h"
#include "nearwise/exact.h"
#include "nearwise/plan.h"
#include "nearwise/vector_file.h"
#include "support/error_of.h"
#include "support/graph_cases.h"
#include "support/memory_limits.h"

namespace nearwise {
namespace {

using testing_io::read_all;
using testing_io::TemporaryFolder;
namespace fs = std::filesystem;

std::size_t count(const Plan& plan, std::string_view kind) {
  return static_cast<std::size_t>(std::ranges::count_if(
      plan.tasks(), [&](const PlannedTask& task) { return task.name.starts_with(kind); }));
}

class PairPlan : public ::testing::Test {
 protected:
  support::Rows make_file(support::Kind kind, std::size_t count, std::size_t dim,
                          ElementType type = ElementType::f32) {
    support::Rows rows(support::generate(kind, count, dim, 3), type);
    vectors = folder / (type == ElementType::u8 ? "rows.u8bin" : "rows.fbin");
    VectorWriter writer(vectors, type, dim);
    writer.append(rows);
    writer.commit();
    return rows;
  }
  Context context(int threads = 2) const {
    return Context::cpu({.threads = threads, .memory_limit = memory, .seed = 7});
  }
  Plan plan(const std::string& name, GraphPlanOptions options = {}) const {
    options.method = GraphPlanMethod::pairs;
    return plan_graph(
        context(), {.vectors = vectors, .work = folder / name, .output = folder / (name + ".nw")}, options);
  }
  // The most memory that makes so many shards.
  void cut_into(std::size_t shards, const GraphPlanOptions& options = {}) {
    std::uint64_t less = 0;
    std::uint64_t more = std::uint64_t{256} << 20;
    while (more - less > 100'000) {
      memory = (less + more) / 2;
      bool enough = false;
      try {
        enough = count(plan("cut", options), "build-") < shards;
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), ErrorCode::out_of_memory);
      }
      (enough ? more : less) = memory;
    }
    memory = less;
    ASSERT_EQ(count(plan("cut", options), "build-"), shards);
  }
  std::vector<std::byte> result(const std::string& name) const { return read_all(folder / (name + ".nw")); }
  // Of the work folder, without manifest and locks.
  std::uint64_t bytes_in(const std::string& name) const {
    std::uint64_t sum = 0;
    for (const auto& entry : fs::directory_iterator(folder / name))
      if (entry.path().extension() == ".nw") sum += entry.file_size();
    return sum;
  }

  const TemporaryFolder folder;
  fs::path vectors;
  std::uint64_t memory = 0;
};

// Few rows are searched exactly, so that the whole must be exact. Two shards would fit as one. Would catch:
// shards that never meet, numbers of the wrong shard, the best of an older version, ties in the order of a
// shard.
TEST_F(PairPlan, FewRowsGiveTheExactGraph) {
  constexpr std::size_t count_of_rows = 3001;
  for (const ElementType type : {ElementType::f32, ElementType::u8}) {
    const support::Rows rows = make_file(support::Kind::integers, count_of_rows, 6, type);
    for (const std::size_t shards : {3, 4, 5, 6}) {
      cut_into(shards, {.degree = 7});
      for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product, Metric::cosine}) {
        const std::string name =
            std::to_string(shards) + std::string(nearwise::name(metric)) + std::string(nearwise::name(type));
        const Plan plan = this->plan(name, {.degree = 7, .metric = metric});
        EXPECT_EQ(count(plan, "merge-"), shards * (shards - 1) / 2);
        const Context own = context();
        plan.run(own);
        EXPECT_LE(own.memory_peak(), memory);
        const KnnGraph graph = load_knn_graph(folder / (name + ".nw"));  // checks the contract
        const Neighbors exact =
            exact_knn_graph(Context::cpu({.threads = 2}), rows.view(), 7, {.metric = metric});
        EXPECT_TRUE(support::same_bytes(graph.neighbors, exact)) << name;
        EXPECT_EQ(graph.report.recall.value, 1);
        ASSERT_EQ(graph.report.rounds.size(), 1U);
        EXPECT_EQ(graph.report.rounds[0].updates, count_of_rows * 7);
      }
    }
  }
}

TEST_F(PairPlan, ManyRowsMeetInPartitions) {
  const support::Rows rows = make_file(support::Kind::normal, 50'000, 8);
  cut_into(3);  // of which two are too many for exact search
  const Plan plan = this->plan("work");
  const Context own = context();
  plan.run(own);
  EXPECT_LE(own.memory_peak(), memory);
  const KnnGraph graph = load_knn_graph(folder / "work.nw");
  EXPECT_TRUE(graph.report.reached);
  EXPECT_LT(graph.report.recall.value, 1);  // or the test is about nothing
  const RecallEstimate other =
      measure_recall(Context::cpu({.seed = 99}), rows.view(), graph.neighbors, Metric::sqeuclidean, 2000);
  EXPECT_NEAR(other.value, graph.report.recall.value, 0.01);
}

// Would catch: outputs that go too early, are missed by nobody and made again, or stay.
TEST_F(PairPlan, GoesOnAfterAnyTaskThoughOutputsGo) {
  make_file(support::Kind::normal, 2600, 5);
  cut_into(5);
  const Plan whole = plan("whole");
  std::uint64_t most = 0;
  whole.run(context(), [&](const PlannedTask&, TaskOutcome) { most = std::max(most, bytes_in("whole")); });
  const auto expected = result("whole");
  const std::uint64_t written =
      std::accumulate(whole.tasks().begin(), whole.tasks().end(), std::uint64_t{0},
                      [](std::uint64_t sum, const PlannedTask& task) { return sum + task.written_bytes; });
  EXPECT_LT(most + expected.size(), written * 9 / 10);
  EXPECT_LE(most + expected.size(), whole.disk_bytes());
  EXPECT_GT(most + expected.size(), whole.disk_bytes() * 8 / 10);

  const std::size_t tasks = whole.tasks().size();
  for (std::size_t done = 1; done < tasks; ++done) {
    const std::string name = "stopped" + std::to_string(done);
    for (std::size_t i = 0; i < done; ++i)
      EXPECT_EQ(plan(name).run_task(context(), whole.tasks()[i].name), TaskOutcome::done);
    EXPECT_LE(bytes_in(name), most);
    const Plan stopped = plan(name);
    for (std::size_t i = 0; i < done; ++i)
      EXPECT_EQ(stopped.run_task(context(), whole.tasks()[i].name), TaskOutcome::done_before) << done;
    std::size_t made = 0;
    stopped.run(context(), [&](const PlannedTask&, TaskOutcome outcome) {
      made += outcome == TaskOutcome::done ? 1 : 0;
    });
    EXPECT_EQ(made, tasks - done);
    EXPECT_EQ(result(name), expected) << done;
    EXPECT_EQ(bytes_in(name), bytes_in("whole")) << done;
  }
}

// What is lost is made again, with all that went and is needed for it.
TEST_F(PairPlan, LostOutputsAreMadeAgain) {
  make_file(support::Kind::normal, 2600, 5);
  cut_into(5);
  const Plan whole = plan("whole");
  whole.run(context());
  const auto expected = result("whole");
  const std::vector<PlannedTask> tasks(whole.tasks().begin(), whole.tasks().end());
  for (std::size_t lost = 0; lost + 1 < tasks.size(); ++lost) {
    const std::string name = "lost" + std::to_string(lost);
    const Plan plan = this->plan(name);
    for (std::size_t i = 0; i <= lost; ++i) plan.run_task(context(), tasks[i].name);
    ASSERT_TRUE(fs::remove(folder / name / (tasks[lost].name + ".nw")));
    EXPECT_FALSE(plan.is_done(tasks[lost].name));
    plan.run(context());
    EXPECT_EQ(result(name), expected) << tasks[lost].name;
    EXPECT_EQ(bytes_in(name), bytes_in("whole")) << tasks[lost].name;
  }
}

TEST_F(PairPlan, Refusals) {
  make_file(support::Kind::normal, 300'000, 4);
  memory = std::uint64_t{16} << 20;
  const Error error = support::error_of([&] { plan("work"); });
  EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
  const std::string words = error.what();
  ASSERT_NE(words.find("small, "), std::string::npos) << words;
  memory = support::sizes_in(words).back();
  EXPECT_LE(count(plan("work"), "build-"), 128U);
  EXPECT_ERROR(plan("work").run_task(context(), "merge-0000-0001"), invalid_argument, "depends on");

  make_file(support::Kind::normal, 3000, 4);
  memory = std::uint64_t{64} << 20;
  plan("work").run_task(context(), "input");
  EXPECT_ERROR(plan_graph(context(), {vectors, folder / "work", folder / "work.nw"}).run(context()),
               invalid_argument, "belongs to another plan");
  EXPECT_EQ(parse_graph_plan_method("pairs"), GraphPlanMethod::pairs);
  EXPECT_EQ(parse_graph_plan_method("partitions"), GraphPlanMethod::partitions);
  EXPECT_ERROR(parse_graph_plan_method("couples"), invalid_argument, "partitions, pairs");
}

}  // namespace
}  // namespace nearwise
