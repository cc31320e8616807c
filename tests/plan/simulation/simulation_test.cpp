// Plans on a simulated machine (scenario.h): some hundred seeds of the figure `simulation`, and seeded bugs
// that it must find.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>

#include "plan/simulation/scenario.h"

namespace nearwise::plan::simulation {
namespace {

TEST(Simulation, AnySeedGivesTheBytesOfAnUndisturbedRun) {
  const SimulationFolder folder;
  std::map<std::string, std::unique_ptr<const SimulatedPlan>> plans;
  Tally tally;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    auto& plan = plans[plan_of_seed(seed)];
    if (plan == nullptr) plan = std::make_unique<const SimulatedPlan>(folder.path(), plan_of_seed(seed));
    try {
      tally += Scenario(*plan, seed).play();
    } catch (const std::exception& error) {
      ADD_FAILURE() << "plan_simulation --seed " << seed << " --trace: " << error.what();
    }
  }
  // Or the test is about nothing.
  EXPECT_GT(tally.kills, 100U);
  EXPECT_GT(tally.power_losses, 300U);
  EXPECT_GT(tally.duplicates, 100U);
  EXPECT_GT(tally.damaged_files, 20U);
}

TEST(Simulation, ASeedRepeatsItselfCallByCall) {
  const auto trace_of = [](const std::string& name, std::uint64_t seed) {
    const SimulationFolder folder;
    const SimulatedPlan plan(folder.path(), name);
    std::ostringstream trace;
    Scenario(plan, seed, Bug::none, &trace).play();
    return trace.str();
  };
  for (const std::string& name : SimulatedPlan::names())
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const std::string trace = trace_of(name, seed);
      EXPECT_EQ(trace, trace_of(name, seed)) << name << " " << seed;
      EXPECT_NE(trace, trace_of(name, seed + 8)) << name << " " << seed;
    }
}

// The first seed that finds a bug in the plan of plain tasks, and what it says.
std::optional<std::string> found_by(std::uint64_t seeds, Bug bug, TaskBug task_bug = TaskBug::none) {
  const SimulationFolder folder;
  const SimulatedPlan plan(folder.path(), "plain", task_bug);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    try {
      Scenario(plan, seed, bug).play();
    } catch (const std::exception& error) {
      ::testing::Test::RecordProperty("seed", static_cast<int>(seed));
      return error.what();
    }
  }
  return std::nullopt;
}

struct SeededBug {
  std::string name;
  Bug bug = Bug::none;
  TaskBug task_bug = TaskBug::none;
  std::string words;  // of the report

  friend void PrintTo(const SeededBug& bug, std::ostream* out) { *out << bug.name; }
};

class SimulationFinds : public ::testing::TestWithParam<SeededBug> {};

TEST_P(SimulationFinds, ASeededBug) {
  const std::optional<std::string> found = found_by(400, GetParam().bug, GetParam().task_bug);
  ASSERT_TRUE(found.has_value());
  EXPECT_NE(found->find(GetParam().words), std::string::npos) << *found;
}

INSTANTIATE_TEST_SUITE_P(
    Bugs, SimulationFinds,
    ::testing::Values(
        SeededBug{.name = "FileNotSynced", .bug = Bug::file_not_synced, .words = "other bytes"},
        SeededBug{.name = "FolderNotSynced", .bug = Bug::folder_not_synced, .words = "reported as done"},
        SeededBug{.name = "ManifestNotSynced", .bug = Bug::manifest_not_synced, .words = "reported as done"},
        SeededBug{.name = "RenamedBeforeSynced", .bug = Bug::renamed_before_synced, .words = "other bytes"},
        SeededBug{.name = "NoLocks", .bug = Bug::no_locks, .words = "has not run"},
        SeededBug{.name = "WritesInPlace", .task_bug = TaskBug::writes_in_place, .words = "join"},
        SeededBug{.name = "TrustsItsInput", .task_bug = TaskBug::trusts_its_input, .words = "other bytes"},
        SeededBug{
            .name = "DeletesItsInput", .task_bug = TaskBug::deletes_its_input, .words = "reported as done"},
        SeededBug{.name = "ReadsAnotherFile", .task_bug = TaskBug::reads_another_file, .words = "other.nw"}),
    [](const auto& bug) { return bug.param.name; });

}  // namespace
}  // namespace nearwise::plan::simulation
