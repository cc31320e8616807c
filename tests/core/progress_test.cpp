// Progress under a clock that the test moves, and cancellation.
#include "core/progress.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "nearwise/error.h"

namespace nearwise {
namespace {

struct Recorder {
  double now = 1000;  // an arbitrary start: only differences may matter
  std::vector<std::uint64_t> reports;
  Clock clock = [this] { return now; };
  ProgressCallback callback = [this](const Progress& progress) {
    EXPECT_STREQ(progress.operation, "knn");
    EXPECT_EQ(progress.total, 100U);
    reports.push_back(progress.done);
  };
};

using Reports = std::vector<std::uint64_t>;

// What a meter keeps a reference to must outlive it.
template <typename Callback, typename Time>
constexpr bool measures = std::is_constructible_v<ProgressMeter, Callback, Time, const char*, std::uint64_t>;
static_assert(measures<const ProgressCallback&, const Clock&>);
static_assert(!measures<ProgressCallback, const Clock&>);
static_assert(!measures<const ProgressCallback&, Clock>);
static_assert(!measures<ProgressCallback, Clock>);

TEST(Progress, ReportsAtMostEveryFiftyMilliseconds) {
  Recorder recorder;
  ProgressMeter meter(recorder.callback, recorder.clock, "knn", 100);
  meter.add(1);
  recorder.now += 0.03125;
  meter.add(1);
  EXPECT_EQ(recorder.reports, Reports{});
  recorder.now += 0.03125;
  meter.add(1);
  meter.add(1);
  EXPECT_EQ(recorder.reports, Reports{3});
  recorder.now += 0.04;
  meter.add(1);
  EXPECT_EQ(recorder.reports, Reports{3});
  recorder.now += 0.02;
  meter.add(5);
  EXPECT_EQ(recorder.reports, (Reports{3, 10}));
}

TEST(Progress, FinishReportsTheTotalAtOnce) {
  Recorder recorder;
  ProgressMeter meter(recorder.callback, recorder.clock, "knn", 100);
  meter.add(10);
  meter.finish();
  EXPECT_EQ(recorder.reports, Reports{100});
}

TEST(Progress, WithoutFinishThereIsNoLastReport) {
  Recorder recorder;
  { ProgressMeter meter(recorder.callback, recorder.clock, "knn", 100); }
  EXPECT_EQ(recorder.reports, Reports{});
}

TEST(Progress, WithoutACallbackTheClockIsNotAsked) {
  const ProgressCallback nobody;
  const Clock forbidden = []() -> double { throw std::logic_error("asked for the time"); };
  ProgressMeter meter(nobody, forbidden, "knn", 100);
  meter.add(100);
  meter.finish();
}

TEST(Progress, AnExceptionOfTheCallbackReachesTheOneWhoAdded) {
  Recorder recorder;
  const ProgressCallback throwing = [](const Progress&) { throw std::runtime_error("enough"); };
  ProgressMeter meter(throwing, recorder.clock, "knn", 100);
  recorder.now += 1;
  EXPECT_THROW(meter.add(1), std::runtime_error);
  EXPECT_THROW(meter.finish(), std::runtime_error);  // and its lock was given back
}

TEST(Progress, TheMachineClockDoesNotGoBack) {
  const double first = machine_clock();
  const double second = machine_clock();
  EXPECT_GE(second, first);
  EXPECT_LT(second - first, 60);
}

TEST(ProgressThreads, CallbacksComeOneAtATimeAndNeverGoBack) {
  constexpr std::uint64_t threads = 4;
  constexpr std::uint64_t adds = 2000;
  double now = 0;  // guarded by the meter: it asks the clock under its lock
  const Clock clock = [&] { return now += 1; };
  std::atomic<int> inside{0};
  std::vector<std::uint64_t> reports;  // plain memory: ThreadSanitizer sees whether callbacks are serialised
  const ProgressCallback callback = [&](const Progress& progress) {
    EXPECT_EQ(++inside, 1);
    reports.push_back(progress.done);
    --inside;
  };
  ProgressMeter meter(callback, clock, "knn", threads * adds);
  std::vector<std::thread> workers;
  for (std::uint64_t worker = 0; worker < threads; ++worker)
    workers.emplace_back([&] {
      for (std::uint64_t i = 0; i < adds; ++i) meter.add(1);
    });
  for (std::thread& worker : workers) worker.join();
  meter.finish();
  ASSERT_FALSE(reports.empty());
  for (std::size_t i = 1; i < reports.size(); ++i) ASSERT_LE(reports[i - 1], reports[i]);
  EXPECT_EQ(reports.back(), threads * adds);
}

TEST(CancelFlag, ChecksPassUntilItIsSetAndThrowEverAfter) {
  CancelFlag flag;
  EXPECT_FALSE(flag.is_set());
  flag.check();
  flag.set();
  flag.set();
  EXPECT_TRUE(flag.is_set());
  for (int i = 0; i < 2; ++i) {
    try {
      flag.check();
      FAIL() << "did not throw";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::cancelled);
    }
  }
}

TEST(CancelThreads, AFlagSetByOneThreadStopsTheOthers) {
  CancelFlag flag;
  std::atomic<int> stopped{0};
  std::vector<std::thread> workers;
  for (int worker = 0; worker < 4; ++worker)
    workers.emplace_back([&] {
      try {
        while (true) {
          flag.check();
          std::this_thread::yield();
        }
      } catch (const Error&) {
        ++stopped;
      }
    });
  flag.set();
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(stopped, 4);
}

}  // namespace
}  // namespace nearwise
