// Tasks by index: each runs once, whatever the number of threads; exceptions arrive; arithmetic is the
// default one. Also run under ThreadSanitizer, with more threads than CPUs.
#include "core/parallel.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "nearwise/error.h"
#include "support/error_of.h"
#include "support/float_modes.h"
#include "support/sanitizers.h"

namespace nearwise {
namespace {

class ThreadsTest : public testing::TestWithParam<int> {
 protected:
  const Threads threads{GetParam()};
};

// The most tasks that ran at the same time.
struct TasksAtOnce {
  void run() {
    const int now = ++running;
    int seen = most;
    while (seen < now && !most.compare_exchange_weak(seen, now)) {
    }
    std::this_thread::yield();
    --running;
  }

  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
};

INSTANTIATE_TEST_SUITE_P(Counts, ThreadsTest, testing::Range(1, 9));

TEST_P(ThreadsTest, EveryIndexRunsExactlyOnce) {
  for (const std::size_t tasks : {0U, 1U, 2U, 3U, 7U, 8U, 9U, 100U, 1000U}) {
    std::vector<std::atomic<int>> runs(tasks);
    threads.for_each(tasks, [&](std::size_t index) { ++runs.at(index); });
    for (std::size_t index = 0; index < tasks; ++index) EXPECT_EQ(runs[index], 1) << index << " of " << tasks;
  }
}

TEST_P(ThreadsTest, ResultsWrittenByTasksAreSeenByTheCaller) {
  std::vector<std::size_t> squares(500);  // plain memory: ThreadSanitizer sees whether the return orders it
  threads.for_each(squares.size(), [&](std::size_t index) { squares[index] = index * index; });
  for (std::size_t index = 0; index < squares.size(); ++index) ASSERT_EQ(squares[index], index * index);
}

TEST_P(ThreadsTest, NoMoreTasksAtOnceThanThreads) {
  EXPECT_EQ(threads.count(), GetParam());
  TasksAtOnce tasks;
  threads.for_each(200, [&](std::size_t) { tasks.run(); });
  EXPECT_LE(tasks.most, GetParam());
  EXPECT_GE(tasks.most, 1);
}

TEST_P(ThreadsTest, CallsNest) {
  std::vector<std::atomic<int>> runs(5 * 6 * 7);
  threads.for_each(5, [&](std::size_t outer) {
    threads.for_each(6, [&](std::size_t middle) {
      threads.for_each(7, [&](std::size_t inner) { ++runs[(outer * 6 + middle) * 7 + inner]; });
    });
  });
  for (const std::atomic<int>& run : runs) EXPECT_EQ(run, 1);
}

TEST_P(ThreadsTest, AnExceptionReachesTheCallerWithItsTypeAndMessage) {
  for (const std::size_t thrower : {0U, 1U, 50U, 99U}) {
    try {
      threads.for_each(100, [&](std::size_t index) {
        if (index == thrower) throw std::out_of_range("task " + std::to_string(index));
      });
      FAIL() << "did not throw";
    } catch (const std::out_of_range& error) {
      EXPECT_EQ(error.what(), "task " + std::to_string(thrower));
    }
  }
}

TEST_P(ThreadsTest, AnExceptionOfTheOnlyTaskReachesTheCaller) {
  EXPECT_THROW(threads.for_each(1, [](std::size_t) { throw std::runtime_error("x"); }), std::runtime_error);
}

TEST_P(ThreadsTest, OneOfManyExceptionsReachesTheCallerAndTheThreadsGoOnWorking) {
  for (int round = 0; round < 20; ++round) {
    int caught = 0;
    try {
      threads.for_each(64, [](std::size_t index) { throw std::runtime_error(std::to_string(index)); });
    } catch (const std::runtime_error&) {
      ++caught;
    }
    EXPECT_EQ(caught, 1);
    std::atomic<std::size_t> sum{0};
    threads.for_each(64, [&](std::size_t index) { sum += index; });
    EXPECT_EQ(sum, 64U * 63 / 2);
  }
}

TEST_P(ThreadsTest, AnExceptionStopsTasksNotYetBegun) {
  constexpr std::size_t tasks = 100'000;
  std::atomic<std::size_t> begun{0};
  EXPECT_THROW(threads.for_each(tasks,
                                [&](std::size_t) {
                                  if (begun++ == 0) throw std::runtime_error("first");
                                  // The others must not end before a thread that was put off has thrown.
                                  std::this_thread::sleep_for(std::chrono::microseconds(10));
                                }),
               std::runtime_error);
  EXPECT_LT(begun, tasks);
}

TEST_P(ThreadsTest, ExceptionsPassThroughNestedCalls) {
  std::atomic<int> inner_catches{0};
  const auto nested = [&](std::size_t outer) {
    try {
      threads.for_each(4, [&](std::size_t inner) {
        if (outer == 2 && inner == 3) throw std::domain_error("deep");
      });
    } catch (const std::domain_error&) {
      ++inner_catches;
      throw;
    }
  };
  EXPECT_THROW(threads.for_each(4, nested), std::domain_error);
  EXPECT_EQ(inner_catches, 1);
}

TEST_P(ThreadsTest, SeveralCallersShareOneSetOfThreads) {
  constexpr std::size_t callers = 4;
  std::vector<std::size_t> sums(callers);
  std::vector<std::thread> workers;
  for (std::size_t caller = 0; caller < callers; ++caller) {
    workers.emplace_back([&, caller] {
      for (int round = 0; round < 20; ++round) {
        std::atomic<std::size_t> sum{0};
        threads.for_each(50, [&](std::size_t index) { sum += index + caller; });
        sums[caller] += sum;
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  for (std::size_t caller = 0; caller < callers; ++caller)
    EXPECT_EQ(sums[caller], 20 * (50 * 49 / 2 + 50 * caller));
}

TEST_P(ThreadsTest, NoMoreTasksAtOnceThanThreadsInNestedCalls) {
  TasksAtOnce tasks;
  threads.for_each(8, [&](std::size_t) { threads.for_each(8, [&](std::size_t) { tasks.run(); }); });
  EXPECT_LE(tasks.most, GetParam());
}

TEST_P(ThreadsTest, MemoryThatEndsIsAnError) {
  const auto exhaust = [](std::size_t) { throw std::bad_alloc(); };
  for (const std::size_t tasks : {1U, 64U}) {
    const Error flat = support::error_of([&] { threads.for_each(tasks, exhaust); });
    EXPECT_EQ(flat.code(), ErrorCode::out_of_memory);
    const Error nested = support::error_of(
        [&] { threads.for_each(tasks, [&](std::size_t) { threads.for_each(tasks, exhaust); }); });
    EXPECT_EQ(nested.code(), ErrorCode::out_of_memory);
  }
}

// Would catch: a thread that, while it waits for helpers, takes over tasks of another caller.
TEST_P(ThreadsTest, AThreadWorksForItsOwnCallersOnly) {
  const Threads others(GetParam());
  std::atomic<bool> stop = false;
  std::thread busy([&] {
    while (!stop) others.for_each(16, [](std::size_t) { std::this_thread::yield(); });
  });
  thread_local bool inside = false;
  std::atomic<int> entered = 0;
  for (int round = 0; round < 50; ++round)
    threads.for_each(16, [&](std::size_t) {
      if (inside) ++entered;
      inside = true;
      threads.for_each(4, [](std::size_t) { std::this_thread::yield(); });
      inside = false;
    });
  stop = true;
  busy.join();
  EXPECT_EQ(entered, 0);
}

// Exits with 42 if a thread that cannot be started is the right error.
[[noreturn]] void start_thread_without_memory() {
  const rlimit none = {.rlim_cur = 0, .rlim_max = 0};
  setrlimit(RLIMIT_AS, &none);
  try {
    const Threads threads(2);
    std::_Exit(1);
  } catch (const Error& error) {
    std::_Exit(error.code() == ErrorCode::out_of_memory ? 42 : 2);
  }
}

// In a process of its own: the workers of this one have been started.
TEST(ThreadsDeathTest, AThreadThatCannotBeStartedIsAnError) {
  if (support::is_sanitized()) GTEST_SKIP() << "sanitizers need address space";
  if (available_threads() < 2) GTEST_SKIP() << "needs two CPUs";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(start_thread_without_memory(), testing::ExitedWithCode(42), "");
}

// A process in which some library switched denormals off and changed the rounding.
struct HostileFloatEnvironment {
  support::FlushDenormals flush_denormals;
  support::RoundingMode rounding{FE_UPWARD};
};

bool denormals_survive() {
  volatile float smallest_normal = std::numeric_limits<float>::min();
  volatile float half = smallest_normal * 0.5F;
  volatile float doubled = half * 2.0F;
  return half != 0 && doubled == smallest_normal;
}

bool rounds_to_nearest() {
  volatile double one = 1.0;
  volatile double sum = one + 0x1p-60;
  return sum == 1.0;
}

TEST_P(ThreadsTest, TasksRunInTheDefaultFloatEnvironmentWhateverTheCallerSet) {
  for (const std::size_t tasks : {1U, 2U, 100U}) {
    std::vector<int> kept(tasks);
    bool caller_still_hostile = false;
    {
      const HostileFloatEnvironment hostile;
      ASSERT_EQ(denormals_survive(), !support::FlushDenormals::available);
      ASSERT_FALSE(rounds_to_nearest());
      threads.for_each(tasks, [&](std::size_t index) {
        std::atomic<int> nested{0};
        threads.for_each(3, [&](std::size_t) { nested += denormals_survive() && rounds_to_nearest(); });
        kept[index] = denormals_survive() && rounds_to_nearest() && nested == 3;
      });
      caller_still_hostile =
          denormals_survive() != support::FlushDenormals::available && !rounds_to_nearest();
    }
    EXPECT_EQ(std::accumulate(kept.begin(), kept.end(), std::size_t{0}), tasks);
    EXPECT_TRUE(caller_still_hostile) << "the caller's environment was changed";
  }
}

TEST_P(ThreadsTest, TheCallersFloatEnvironmentSurvivesAnException) {
  const HostileFloatEnvironment hostile;
  EXPECT_THROW(threads.for_each(9, [](std::size_t) { throw std::runtime_error("x"); }), std::runtime_error);
  EXPECT_FALSE(rounds_to_nearest());
  EXPECT_EQ(denormals_survive(), !support::FlushDenormals::available);
}

TEST(AvailableThreads, IsAtLeastOneAndNotMoreThanTheMachineHas) {
  EXPECT_GE(available_threads(), 1);
  EXPECT_LE(available_threads(), std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
}

}  // namespace
}  // namespace nearwise
