// Progress of plans: a task's own reports count within its share, also those of further passes, repairs and
// further attempts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "backend/context_state.h"
#include "core/progress.h"
#include "plan/engine/executor_fixture.h"

namespace nearwise {
namespace {

class ExecutorProgress : public ExecutorRepairs {
 protected:
  // A task of this estimated duration that reports itself as half done before it reads anything.
  plan::Task halved(const std::string& name, double seconds, std::vector<std::string> after = {}) {
    plan::Task made = reader(name, std::move(after));
    made.planned.seconds = seconds;
    made.work = [make = made.work](const Context& own) {
      ProgressMeter progress(own.state().options.progress, own.state().clock, "half", 2);
      progress.add(1);
      make(own);
    };
    return made;
  }
  // Every report passes.
  Context watched() {
    return Context::cpu({.threads = 1,
                         .seed = 7,
                         .progress =
                             [this](const Progress& now) {
                               shares.push_back(static_cast<double>(now.done) /
                                                static_cast<double>(now.total));
                             },
                         .clock = [this] { return clock += 1; }});
  }
  // A task begins where the one before it ended, which is reported, too.
  void expect_shares(const std::vector<double>& expected) const {
    ASSERT_EQ(shares.size(), expected.size()) << ::testing::PrintToString(shares);
    for (std::size_t i = 0; i < shares.size(); ++i) EXPECT_NEAR(shares[i], expected[i], 0.005) << i;
    EXPECT_TRUE(std::ranges::is_sorted(shares));
    EXPECT_EQ(std::ranges::count(shares, 1.0), 1);
  }

  std::vector<double> shares;
  double clock = 0;
};

TEST_F(ExecutorProgress, ReportsOfATaskAreItsShare) {
  const Plan plan = this->plan({halved("first", 1), halved("last", 3, {"first"})});
  plan.run(watched());
  expect_shares({1.0 / 8, 1.0 / 4, 5.0 / 8, 1});
  // Tasks that are done have no share.
  shares.clear();
  std::filesystem::remove(work / "last.nw");
  plan.run(watched());
  expect_shares({1.0 / 2, 1});
  // A task alone, as on a cluster.
  shares.clear();
  std::filesystem::remove_all(work);
  EXPECT_EQ(plan.run_task(watched(), "first"), TaskOutcome::done);
  expect_shares({1.0 / 2, 1});
}

// Would catch: a further pass at 99 %, or one that is expected until the end although it is not needed.
TEST_F(ExecutorProgress, AFurtherPassHasAShareOnceItIsNeeded) {
  for (const bool is_needed : {true, false}) {
    std::filesystem::remove_all(work);
    shares.clear();
    plan::Task further = halved("further", 2, {"decide"});
    further.planned.if_needed = true;
    further.decided_by = "decide";
    further.needed = [is_needed] { return is_needed; };
    const Plan plan = this->plan({halved("decide", 1), further, halved("last", 1, {"decide"})});
    plan.run(watched());
    if (is_needed)
      expect_shares({1.0 / 4, 1.0 / 2, 4.0 / 6, 5.0 / 6, 11.0 / 12, 1});
    else
      expect_shares({1.0 / 4, 1.0 / 2, 3.0 / 4, 1});
  }
}

TEST_F(ExecutorProgress, RepairsAndAttemptsShareWhatIsLeft) {
  const Plan plan = this->plan({halved("a", 1), halved("b", 1, {"a"}), halved("last", 2, {"b"})});
  plan.run_task(context(), "a");
  damage("a");
  plan.run(watched());
  // b fails at its half, a sixth of the whole. Left are the repair of a, b again, and the last.
  const double left = 5.0 / 6;
  expect_shares(
      {1.0 / 6, 1 - left * 7 / 8, 1 - left * 3 / 4, 1 - left * 5 / 8, 1 - left / 2, 1 - left / 4, 1});
}

TEST_F(ExecutorProgress, TheResultIsWrittenAndReadBeforeTheEnd) {
  plan::Task last = halved("last", 1);
  last.planned.written_bytes = 2'000'000'000;  // seconds: 2 to write, 1 to verify
  this->plan({last}).run(watched());
  expect_shares({3.0 / 8, 1});
}

}  // namespace
}  // namespace nearwise
