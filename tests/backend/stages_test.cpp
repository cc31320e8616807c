// Shares of progress under a clock that lets every report pass.
#include "backend/stages.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/context_state.h"
#include "core/progress.h"

namespace nearwise {
namespace {

using Reports = std::vector<std::uint64_t>;

class StagesTest : public testing::Test {
 protected:
  Context context() {
    return Context::cpu({.threads = 1,
                         .progress =
                             [this](const Progress& now) {
                               EXPECT_EQ(now.operation, std::string("build"));
                               EXPECT_EQ(now.total, Stages::total);
                               reports.push_back(now.done);
                             },
                         .clock = [this] { return ++seconds * 1.0; }});
  }

  // An operation that reports itself as half done, then as complete.
  static void run(const Context& own) {
    ProgressMeter progress(own.state().options.progress, own.state().clock, "step", 10);
    progress.add(5);
    progress.add(5);
    progress.finish();
  }

  Reports reports;
  std::atomic<int> seconds = 0;
};

TEST_F(StagesTest, SharesFollowCosts) {
  Stages stages(context(), "build");
  run(stages.next(1, 3));
  EXPECT_EQ(reports, (Reports{125'000, 250'000}));
  run(stages.next(3, 0));
  // The second stage begins where the first ended, and is complete only with finish().
  EXPECT_EQ(reports, (Reports{125'000, 250'000, 625'000, 999'999}));
  stages.finish();
  EXPECT_EQ(reports.back(), Stages::total);
}

TEST_F(StagesTest, StagesNest) {
  Stages stages(context(), "build");
  Stages inner(stages.next(1, 1), "inner");
  run(inner.next(1, 1));
  EXPECT_EQ(reports, (Reports{125'000, 250'000}));
  // What ends early counts as complete when the next begins.
  stages.next(1, 1);
  EXPECT_EQ(reports.back(), 500'000U);
}

TEST_F(StagesTest, NothingIsTakenBack) {
  Stages stages(context(), "build");
  const Context both = stages.next(1, 1);
  run(both);
  const Reports once = reports;
  run(both);  // another operation in the same stage
  EXPECT_EQ(reports, once);
}

TEST_F(StagesTest, AnAbandonedStageCountsAsFarAsItReported) {
  Stages stages(context(), "build");
  const auto run_half = [](const Context& own) {
    ProgressMeter progress(own.state().options.progress, own.state().clock, "step", 10);
    progress.add(5);
  };
  run_half(stages.next(1, 1));
  EXPECT_EQ(reports, (Reports{250'000}));
  stages.abandon();
  // What is left, three quarters, is shared by a repair, another attempt, and the second stage.
  run(stages.next(1, 2));
  EXPECT_EQ(reports, (Reports{250'000, 375'000, 500'000}));
  run(stages.next(1, 1));
  EXPECT_EQ(reports, (Reports{250'000, 375'000, 500'000, 625'000, 750'000}));
  // One that fails before it reports anything counts as nothing.
  stages.next(1, 0);
  stages.abandon();
  run_half(stages.next(1, 0));
  EXPECT_EQ(reports.back(), 875'000U);
}

TEST_F(StagesTest, ReportsAreThrottled) {
  const Context slow = Context::cpu({.threads = 1,
                                     .progress = [this](const Progress& now) { reports.push_back(now.done); },
                                     .clock = [] { return 1.0; }});
  Stages stages(slow, "build");
  for (int i = 0; i < 100; ++i) run(stages.next(1, 100));
  EXPECT_TRUE(reports.empty());
  stages.finish();
  EXPECT_EQ(reports, Reports{Stages::total});
}

TEST_F(StagesTest, CancellationIsShared) {
  const Context outer = context();
  Stages stages(outer, "build");
  const Context stage = stages.next(1, 0);
  outer.cancel();
  EXPECT_TRUE(stage.cancelled());
  // Without a listener the stage runs on the context itself.
  const Context silent = Context::cpu({.threads = 1});
  Stages unheard(silent, "build");
  EXPECT_EQ(&unheard.next(1, 1).state(), &silent.state());
}

}  // namespace
}  // namespace nearwise
