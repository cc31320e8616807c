// The lock of an index: who waits for whom.
#include "index/index_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "nearwise/error.h"

namespace nearwise::index {
namespace {

using Reading = IndexLock::Reading;
using Changing = IndexLock::Changing;
using Writing = IndexLock::Writing;

void wait_briefly() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

void wait_until(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::yield();
}

TEST(IndexLockThreads, ReadersGoOnWhileAChangePreparesAndItWaitsForThem) {
  IndexLock lock;
  EXPECT_FALSE(lock.is_changing());
  std::optional<Reading> before(std::in_place, lock);
  std::atomic<bool> is_preparing = false;
  std::atomic<bool> is_read = false;
  std::atomic<bool> is_written = false;
  std::thread change([&] {
    Changing changing(lock);
    is_preparing = true;
    wait_until(is_read);
    const Writing writing(changing);
    is_written = true;
  });
  wait_until(is_preparing);
  EXPECT_TRUE(lock.is_changing());
  { const Reading meanwhile(lock); }
  is_read = true;
  wait_briefly();
  EXPECT_FALSE(is_written);
  before.reset();
  change.join();
  EXPECT_TRUE(is_written);
  EXPECT_FALSE(lock.is_changing());
}

TEST(IndexLockThreads, ReadersGiveWayToAChangeThatWaits) {
  IndexLock lock;
  std::optional<Reading> before(std::in_place, lock);
  std::atomic<bool> is_preparing = false;
  std::atomic<bool> is_written = false;
  std::thread change([&] {
    Changing changing(lock);
    is_preparing = true;
    const Writing writing(changing);
    is_written = true;
  });
  wait_until(is_preparing);
  wait_briefly();  // it waits now
  std::atomic<bool> came_first = false;
  std::thread reader([&] {
    const Reading after(lock);
    came_first = !is_written;
  });
  wait_briefly();
  before.reset();
  change.join();
  reader.join();
  EXPECT_FALSE(came_first);
}

TEST(IndexLockThreads, ReadersWithoutEndAndChangesWithoutEndBothProceed) {
  IndexLock lock;
  std::atomic<bool> stop = false;
  std::atomic<int> reads = 0;
  long guarded = 0;  // ThreadSanitizer watches it
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i)
    readers.emplace_back([&] {
      while (!stop) {
        const Reading reading(lock);
        EXPECT_GE(guarded, 0);
        ++reads;
      }
    });
  std::vector<std::thread> changes;
  for (int i = 0; i < 2; ++i)
    changes.emplace_back([&] {
      for (int change = 0; change < 200; ++change) {
        Changing changing(lock);
        const Writing writing(changing);
        ++guarded;
      }
    });
  for (std::thread& change : changes) change.join();
  const int before = reads;
  while (reads < before + 100) std::this_thread::yield();
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(guarded, 400);
}

TEST(IndexLockThreads, AWaitEndsWhenItIsCancelled) {
  IndexLock lock;
  CancelFlag cancel;
  cancel.set();
  const auto expect_cancelled = [](const auto& call) {
    try {
      call();
      ADD_FAILURE() << "it did not wait";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::cancelled);
    }
  };
  {
    Changing changing(lock);
    expect_cancelled([&] { const Changing other(lock, &cancel); });
    {
      const Reading reading(lock);
      expect_cancelled([&] { const Writing writing(changing, &cancel); });
      const Reading not_held_up(lock, &cancel);
    }
    const Writing writing(changing);
    expect_cancelled([&] { const Reading reading(lock, &cancel); });
  }
  Changing changing(lock, &cancel);
  const Writing writing(changing, &cancel);
}

TEST(IndexLock, IsOpenInAForkedChild) {
  IndexLock lock;
  const auto is_usable = [&] {
    { const Reading reading(lock); }
    Changing changing(lock);
    const Writing writing(changing);
    return lock.is_changing();
  };
  const auto status_of_child = [&] {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      _exit(is_usable() && is_usable() ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
  };
  {
    const Reading reading(lock);
    EXPECT_EQ(status_of_child(), 0);
  }
  {
    Changing changing(lock);
    const Writing writing(changing);
    EXPECT_EQ(status_of_child(), 0);
  }
  EXPECT_TRUE(is_usable());
}

}  // namespace
}  // namespace nearwise::index
