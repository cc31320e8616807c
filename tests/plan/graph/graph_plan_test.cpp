// Graphs by plans: the contract, the recall and the bytes of the result, whichever process runs the tasks and
// however he is stopped.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

#include "io/expect_error.h"
#include "io/failing_calls.h"
#include "io/temporary_folder.h"
#include "nearwise/plan.h"
#include "nearwise/vector_file.h"
#include "plan/engine/file_lock.h"
#include "support/error_of.h"
#include "support/graph_cases.h"
#include "support/memory_limits.h"

namespace nearwise {
namespace {

using testing_io::FailingCalls;
using testing_io::read_all;
using testing_io::TemporaryFolder;
namespace fs = std::filesystem;

// Almost the least, so that some ten thousand rows are several groups.
constexpr std::uint64_t little_memory = std::uint64_t{40} << 20;

void write_rows(const fs::path& path, const RowsView& rows) {
  VectorWriter writer(path, rows.type(), rows.dim());
  writer.append(rows);
  writer.commit();
}

support::Rows rows_of(support::Kind kind, std::size_t rows, std::size_t dim) {
  return {support::generate(kind, rows, dim, 3), ElementType::f32};
}

// Groups of partitions, or shards.
std::ptrdiff_t parts_of(const Plan& plan) {
  return std::ranges::count_if(plan.tasks(), [](const PlannedTask& task) {
    return task.name.starts_with("build-") && !task.if_needed;
  });
}

// A file of rows, and plans of its graph.
class GraphPlan : public ::testing::Test {
 protected:
  void make_file(const RowsView& rows) { write_rows(folder / "rows.fbin", rows); }

  Context context(int threads = 2, std::uint64_t seed = 7) const {
    return Context::cpu({.threads = threads, .memory_limit = memory, .seed = seed});
  }
  PlanFiles files(const std::string& name) const {
    return {.vectors = folder / "rows.fbin", .work = folder / name, .output = folder / (name + ".nw")};
  }
  Plan plan(const std::string& name, GraphPlanOptions options = {}, int threads = 2) const {
    options.method = method();
    return plan_graph(context(threads), files(name), options);
  }
  virtual GraphPlanMethod method() const { return GraphPlanMethod::partitions; }
  std::vector<std::byte> result(const std::string& name) const { return read_all(folder / (name + ".nw")); }

  const TemporaryFolder folder;
  std::uint64_t memory = little_memory;
};

class AnyGraphPlan : public GraphPlan, public ::testing::WithParamInterface<GraphPlanMethod> {
 protected:
  GraphPlanMethod method() const override { return GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Ways, AnyGraphPlan,
                         ::testing::Values(GraphPlanMethod::partitions, GraphPlanMethod::pairs),
                         [](const auto& method) { return std::string(name(method.param)); });

TEST_P(AnyGraphPlan, KeepsContractRecallAndLimit) {
  const support::Rows rows = rows_of(support::Kind::normal, 40'000, 8);
  make_file(rows);
  for (const Metric metric : {Metric::sqeuclidean, Metric::cosine}) {
    const std::string name(nearwise::name(metric));
    const Context own = context();
    const Plan plan = this->plan(name, {.degree = 10, .metric = metric, .target_recall = 0.95});
    EXPECT_GE(parts_of(plan), 3);  // or the test is about nothing
    plan.run(own);
    EXPECT_LE(own.memory_peak(), little_memory);
    EXPECT_EQ(own.memory_used(), 0U);

    const KnnGraph graph = load_knn_graph(folder / (name + ".nw"));  // checks the contract
    EXPECT_EQ(graph.rows(), rows.view().rows());
    EXPECT_EQ(graph.metric, metric);
    EXPECT_TRUE(graph.report.reached);
    EXPECT_GE(graph.report.recall.low, 0.95);
    EXPECT_EQ(graph.report.recall.rows, 2000U);
    EXPECT_EQ(plan.report().recall.value, graph.report.recall.value);
    // Of other rows than those that the plan has drawn.
    const RecallEstimate other =
        measure_recall(Context::cpu({.seed = 99}), rows.view(), graph.neighbors, metric, 2000);
    EXPECT_GE(other.high, 0.95);
    EXPECT_NEAR(other.value, graph.report.recall.value, 0.01);
  }
}

TEST_P(AnyGraphPlan, EveryTaskKeepsItsEstimateOfMemory) {
  make_file(rows_of(support::Kind::normal, 30'000, 8));
  const Plan plan = this->plan("work");
  for (const PlannedTask& task : plan.tasks()) {
    const Context own = context();
    if (plan.run_task(own, task.name) != TaskOutcome::done) continue;
    EXPECT_LE(own.memory_peak(), std::max<std::uint64_t>(task.memory_bytes, 1 << 20)) << task.name;
    EXPECT_LE(task.memory_bytes, little_memory) << task.name;
    EXPECT_TRUE(plan.is_done(task.name)) << task.name;
  }
}

// The neighbours of 1024 rows of the sample would be more than a tile of searched rows.
TEST_F(GraphPlan, TrainingKeepsItsEstimateOfMemoryAtALargeDegree) {
  make_file(rows_of(support::Kind::normal, 24'000, 8));
  memory = std::uint64_t{256} << 20;
  const Plan plan = this->plan("work", {.degree = 200});
  for (const char* const name : {"input", "sample", "train-0"}) {
    const Context own = context();
    EXPECT_EQ(plan.run_task(own, name), TaskOutcome::done);
    const auto task = std::ranges::find(plan.tasks(), name, &PlannedTask::name);
    EXPECT_LE(own.memory_peak(), task->memory_bytes) << name;
  }
}

// Rows change while the plan rests, and their file keeps its size and times.
TEST_P(AnyGraphPlan, AChangedInputIsRefused) {
  make_file(rows_of(support::Kind::normal, 20'000, 8));
  const fs::path vectors = folder / "rows.fbin";
  const auto original = read_all(vectors);
  auto changed = original;
  for (std::size_t i = changed.size() / 2; i < changed.size() / 2 + 4'000; ++i) changed[i] ^= std::byte{1};
  const auto time = fs::last_write_time(vectors);
  const auto replace_by = [&](const std::vector<std::byte>& bytes) {
    testing_io::write_all(vectors, bytes);
    fs::last_write_time(vectors, time);
  };
  plan("whole").run(context());
  const auto expected = result("whole");
  const std::size_t tasks = plan("whole").tasks().size();
  for (std::size_t done = 1; done < tasks; done += 1 + tasks / 12) {
    const std::string name = "stopped-" + std::to_string(done);
    const Plan stopped = plan(name);
    for (std::size_t i = 0; i < done; ++i) stopped.run_task(context(), stopped.tasks()[i].name);
    replace_by(changed);
    EXPECT_ERROR(stopped.run(context()), invalid_argument, "has changed since the plan began");
    EXPECT_ERROR(stopped.run_task(context(), "sample"), invalid_argument, "has changed");
    replace_by(original);
    stopped.run(context());
    EXPECT_EQ(result(name), expected) << done;
    // Also when all is done.
    stopped.remove_work();
    stopped.run(context());
    replace_by(changed);
    EXPECT_ERROR(stopped.run(context()), invalid_argument, "has changed");
    replace_by(original);
  }
}

TEST_P(AnyGraphPlan, TheWorkFolderOfPrivateVectorsIsPrivate) {
  make_file(rows_of(support::Kind::normal, 500, 8));
  const auto mode = [&](const std::string& name) {
    return fs::status(folder / name).permissions() & fs::perms(0077);
  };
  plan("open").run(context());
  fs::permissions(folder / "rows.fbin", fs::perms(0600));
  plan("private").run(context());
  EXPECT_EQ(mode("private"), fs::perms::none);
  EXPECT_NE(mode("open"), fs::perms::none);
  // A folder that the user made is left as it is.
  fs::create_directory(folder / "own");
  const fs::perms before = mode("own");
  plan("own").run(context());
  EXPECT_EQ(mode("own"), before);
}

// The checksums are lost together with the vectors they were made of.
TEST_P(AnyGraphPlan, LostChecksumsOfAChangedInputAreNotReplaced) {
  make_file(rows_of(support::Kind::normal, 20'000, 8));
  const Plan stopped = plan("work");
  for (const char* const name : {"input", "sample"}) stopped.run_task(context(), name);
  fs::remove(folder / "work" / "input.nw");
  support::Rows other(support::generate(support::Kind::normal, 20'000, 8, 4), ElementType::f32);
  write_rows(folder / "rows.fbin", other);
  const std::string next = method() == GraphPlanMethod::pairs ? "build-0000" : "train-0";
  EXPECT_ERROR(stopped.run_task(context(), next), invalid_argument, "run again to make anew");
  // The sample is one of the earlier vectors.
  if (method() == GraphPlanMethod::partitions) {
    EXPECT_ERROR(stopped.run_task(context(), next), invalid_argument, "'sample', which has not run, or must");
  }
  stopped.run(context());
  plan("anew").run(context());
  EXPECT_EQ(result("work"), result("anew"));
}

TEST_P(AnyGraphPlan, SameBytesByAnyExecutor) {
  make_file(rows_of(support::Kind::integers, 40'000, 8));
  EXPECT_GE(parts_of(plan("whole")), 3);
  plan("whole").run(context());
  const auto expected = result("whole");

  plan("one_thread", {}, 1).run(context(1));
  EXPECT_EQ(result("one_thread"), expected);

  // Task by task, of those that can run always the last; each by a plan of its own, as in another process.
  const Plan listed = plan("backwards");
  std::vector<PlannedTask> left(listed.tasks().begin(), listed.tasks().end());
  std::set<std::string> done;
  while (!left.empty()) {
    const auto ready = std::find_if(left.rbegin(), left.rend(), [&](const PlannedTask& task) {
      return std::ranges::all_of(task.after, [&](const std::string& name) { return done.contains(name); });
    });
    ASSERT_NE(ready, left.rend());
    plan("backwards").run_task(context(), ready->name);
    done.insert(ready->name);
    left.erase(std::next(ready).base());
  }
  EXPECT_EQ(result("backwards"), expected);
}

TEST_P(AnyGraphPlan, GoesOnWhereItWasStopped) {
  make_file(rows_of(support::Kind::normal, 40'000, 8));
  plan("whole").run(context());
  const auto expected = result("whole");
  const Plan stopped = plan("stopped");
  EXPECT_GE(parts_of(stopped), 3);
  const std::size_t some = stopped.tasks().size() / 4;
  for (std::size_t i = 0; i < some; ++i) {
    EXPECT_EQ(stopped.run_task(context(), stopped.tasks()[i].name), TaskOutcome::done);
    EXPECT_EQ(stopped.run_task(context(), stopped.tasks()[i].name), TaskOutcome::done_before);
  }
  EXPECT_EQ(stopped.remove_work(), 0U);  // not before the result is there
  std::size_t repeated = 0;
  stopped.run(context(), [&](const PlannedTask&, TaskOutcome outcome) {
    repeated += outcome == TaskOutcome::done_before ? 1 : 0;
  });
  EXPECT_EQ(repeated, some);
  EXPECT_EQ(result("stopped"), expected);

  // What was lost or damaged is made again, and nothing else.
  const std::vector<std::string> some_tasks =
      method() == GraphPlanMethod::pairs
          ? std::vector<std::string>{"build-0000", "sample", "build-0001", "measure-0"}
          : std::vector<std::string>{"train-0", "sample", "merge-0-0000", "measure-0"};
  for (const std::string& lost : some_tasks) {
    const fs::path file = folder / "stopped" / (lost + ".nw");
    const auto before = read_all(file);
    if (lost == some_tasks.front())
      testing_io::write_all(file, std::string("damaged"));
    else
      fs::remove(file);
    fs::remove(folder / "stopped.nw");
    std::vector<std::string> made;
    stopped.run(context(), [&](const PlannedTask& task, TaskOutcome outcome) {
      if (outcome == TaskOutcome::done) made.push_back(task.name);
    });
    EXPECT_EQ(made, (std::vector<std::string>{lost, "finish"}));
    EXPECT_EQ(read_all(file), before);
    EXPECT_EQ(result("stopped"), expected);
  }
  if (method() == GraphPlanMethod::partitions) {
    // What a group was built of has gone, and is made again, too.
    fs::remove(folder / "stopped" / "build-0-0001.nw");
    fs::remove(folder / "stopped.nw");
    std::vector<std::string> made;
    stopped.run(context(), [&](const PlannedTask& task, TaskOutcome outcome) {
      if (outcome == TaskOutcome::done && !task.name.starts_with("assign-0-")) made.push_back(task.name);
    });
    EXPECT_EQ(made, (std::vector<std::string>{"build-0-0001", "finish"}));
    EXPECT_EQ(result("stopped"), expected);
    EXPECT_FALSE(fs::exists(folder / "stopped" / "assign-0-0000.nw"));
  }
  // The result is all that a finished plan needs.
  fs::remove(folder / "stopped" / "train-0.nw");  // as if it had been stopped while it removed the files
  EXPECT_GT(stopped.remove_work(), expected.size());
  EXPECT_EQ(stopped.remove_work(), 0U);
  for (const auto& entry : fs::directory_iterator(folder / "stopped"))
    EXPECT_TRUE(entry.path().filename() == "input.nw" || entry.path().extension() != ".nw") << entry.path();
  stopped.run(context(), [](const PlannedTask& task, TaskOutcome outcome) {
    EXPECT_EQ(task.name, "finish");
    EXPECT_EQ(outcome, TaskOutcome::done_before);
  });
}

TEST_P(AnyGraphPlan, EveryCallFailsOnce) {
  // Few, but several shards, of which one meets the others later: an output goes.
  if (method() == GraphPlanMethod::pairs) memory = std::uint64_t{45} << 18;
  make_file(rows_of(support::Kind::normal, method() == GraphPlanMethod::pairs ? 800 : 300, 5));
  EXPECT_EQ(parts_of(plan("whole")), method() == GraphPlanMethod::pairs ? 3 : 1);
  plan("whole").run(context(1));
  const auto expected = result("whole");
  int call = 1;
  for (bool failed = true; failed; ++call) {
    fs::remove_all(folder / "work");
    fs::remove(folder / "work.nw");
    const Plan plan = this->plan("work");
    bool thrown = false;
    {
      const FailingCalls faults({.fail_call = call, .error = EIO});
      try {
        plan.run(context(1));
      } catch (const Error&) {
        thrown = true;
      }
      failed = faults.failed();
      EXPECT_TRUE(failed || !thrown) << call;
    }
    plan.run(context(1));
    EXPECT_EQ(result("work"), expected) << call;
  }
  EXPECT_GT(call, 50);
}

TEST_P(AnyGraphPlan, RowsThatAreHardToPart) {
  for (const auto& [kind, count] : {std::pair{support::Kind::identical, 3000},
                                    {support::Kind::exact_duplicates, 20'000},
                                    {support::Kind::near_duplicates, 3000},
                                    {support::Kind::one_hot, 3000},
                                    {support::Kind::normal, 1},
                                    {support::Kind::normal, 2},
                                    {support::Kind::normal, 7}}) {
    const support::Rows rows = rows_of(kind, static_cast<std::size_t>(count), 6);
    make_file(rows);
    const std::string name = "hard" + std::to_string(static_cast<int>(kind)) + "_" + std::to_string(count);
    plan(name).run(context());
    const KnnGraph graph = load_knn_graph(folder / (name + ".nw"));
    EXPECT_EQ(graph.rows(), rows.view().rows());
    EXPECT_GE(graph.report.recall.value, 0.95) << name;
  }
}

TEST_F(GraphPlan, FurtherPassesWhereTheRecallIsNotReached) {
  make_file(rows_of(support::Kind::normal, 30'000, 16));
  const Plan plan = this->plan("work", {.target_recall = 0.99999});
  plan.run(context());
  const GraphReport report = plan.report();
  ASSERT_GE(report.rounds.size(), 2U);
  for (std::size_t pass = 1; pass < report.rounds.size(); ++pass) {
    EXPECT_GE(report.rounds[pass].recall.value, report.rounds[pass - 1].recall.value);
    EXPECT_LT(report.rounds[pass].updates, report.rounds[pass - 1].updates);
  }
  EXPECT_EQ(report.reached, report.recall.low >= 0.99999);
}

TEST_F(GraphPlan, Refusals) {
  make_file(rows_of(support::Kind::normal, 3000, 6));
  EXPECT_ERROR(plan_graph(Context::cpu({}), files("work")), invalid_argument, "must have a memory limit");
  EXPECT_ERROR(plan_graph(Context::cpu({.memory_limit = 1 << 20}), files("work")), out_of_memory,
               "would suffice");
  // The limit that would do does.
  const std::string words =
      support::error_of([&] { plan_graph(Context::cpu({.memory_limit = 1 << 20}), files("work")); }).what();
  const std::uint64_t enough = support::sizes_in(words).back();
  EXPECT_NO_THROW(plan_graph(Context::cpu({.memory_limit = enough}), files("work")));
  EXPECT_ERROR(plan("work", {.target_recall = 1}), invalid_argument, "below 1");
  EXPECT_ERROR(plan("work", {.degree = 0}), invalid_argument, "at least 1");

  const Plan plan = this->plan("work");
  EXPECT_FALSE(fs::exists(folder / "work"));
  EXPECT_ERROR(plan.run_task(context(), "cook"), invalid_argument, "no task 'cook'");
  EXPECT_ERROR(plan.run_task(context(), "build-0-0000"), invalid_argument, "depends on 'assign-0-0000'");
  EXPECT_ERROR(plan.run_task(context(), "train-1"), invalid_argument, "depends on 'measure-0'");
  EXPECT_ERROR(plan.run_task(context(2, 8), "sample"), invalid_argument, "seed 7");
  EXPECT_ERROR(plan.run_task(Context::cpu({.memory_limit = 1 << 20, .seed = 7}), "sample"), invalid_argument,
               "bytes of memory");
  EXPECT_ERROR(plan.report(), not_found, "work.nw");
  plan.run_task(context(), "input");
  EXPECT_ERROR(this->plan("work", {.degree = 9}).run(context()), invalid_argument, "belongs to another plan");
  {
    const plan::FileLock lock(folder / "work/lock", plan::FileLock::Mode::exclusive);
    EXPECT_ERROR(plan.run(context()), cannot_create, "somebody else is at work");
  }
  plan.run(context());
}

TEST_P(AnyGraphPlan, RowsThatAreNoNumbersAreNamed) {
  support::Rows rows = rows_of(support::Kind::normal, 3000, 6);
  Matrix<float> copy(3000, 6);
  std::copy_n(reinterpret_cast<const float*>(rows.view().data()), 3000 * 6, copy.data());
  copy(2500, 3) = std::numeric_limits<float>::quiet_NaN();
  make_file(copy);
  EXPECT_ERROR(plan("work").run(context()), invalid_argument, "row 2500");
}

}  // namespace
}  // namespace nearwise
