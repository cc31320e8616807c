// The memory limit is a promise: kept to the byte, by any number of threads, and given back whatever happens.
#include "core/memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "core/math/random.h"
#include "nearwise/error.h"
#include "support/sanitizers.h"

namespace nearwise {
namespace {

template <typename Call>
bool refused(Call call) {
  try {
    call();
    return false;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
    return true;
  }
}

TEST(MemoryBudget, TheLimitItselfMayBeUsedAndNotOneByteMore) {
  MemoryBudget budget(1000);
  budget.take(400);
  budget.take(600);
  EXPECT_EQ(budget.used(), 1000U);
  EXPECT_EQ(budget.available(), 0U);
  EXPECT_TRUE(refused([&] { budget.take(1); }));
  budget.take(0);
  budget.give_back(1000);
  EXPECT_EQ(budget.used(), 0U);
  EXPECT_TRUE(refused([&] { budget.take(1001); }));
  budget.take(1000);
}

TEST(MemoryBudget, ARefusalTakesNothingAndNamesTheThreeNumbers) {
  MemoryBudget budget(1000);
  budget.take(300);
  try {
    budget.take(701);
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "memory: 701 B more exceed the limit of 1000 B (300 B in use)");
  }
  EXPECT_EQ(budget.used(), 300U);
  EXPECT_EQ(budget.peak(), 300U);
  EXPECT_EQ(budget.available(), 700U);
}

TEST(MemoryBudget, RequestsThatWouldWrapAreRefused) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  MemoryBudget budget(1000);
  budget.take(500);
  for (const std::uint64_t bytes : {most, most - 499, most - 500, most / 2})
    EXPECT_TRUE(refused([&] { budget.take(bytes); }));
  EXPECT_EQ(budget.used(), 500U);
}

TEST(MemoryBudget, PeakIsTheHighestUseSoFar) {
  MemoryBudget budget(1000);
  budget.take(700);
  budget.give_back(600);
  budget.take(200);
  EXPECT_EQ(budget.used(), 300U);
  EXPECT_EQ(budget.peak(), 700U);
  budget.take(500);
  EXPECT_EQ(budget.peak(), 800U);
}

TEST(MemoryBudget, WithoutALimitItOnlyCounts) {
  MemoryBudget budget;
  EXPECT_EQ(budget.available(), std::numeric_limits<std::uint64_t>::max());
  budget.take(std::uint64_t{1} << 50);
  EXPECT_EQ(budget.peak(), std::uint64_t{1} << 50);
}

TEST(Reservation, GivesBackOnceHoweverItIsMoved) {
  MemoryBudget budget(100);
  {
    Reservation first(budget, 60);
    Reservation second = std::move(first);
    EXPECT_EQ(budget.used(), 60U);
    Reservation third(budget, 40);
    third = std::move(second);
    EXPECT_EQ(budget.used(), 100U);
    third = Reservation();
    EXPECT_EQ(budget.used(), 40U);
  }
  EXPECT_EQ(budget.used(), 0U);
}

TEST(Buffer, CountsWhatItAllocatesAndIsAligned) {
  MemoryBudget budget;
  for (const std::size_t size : {0U, 1U, 15U, 16U, 17U, 1000U, 4096U}) {
    Buffer<float> buffer(budget, size);
    EXPECT_EQ(buffer.size(), size);
    EXPECT_EQ(buffer.span().size(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0U);
    EXPECT_GE(budget.used(), size * sizeof(float));
    EXPECT_LE(budget.used(), size * sizeof(float) + 64);  // never more than a cache line of rounding
    EXPECT_EQ(budget.used(), buffer_bytes(size, sizeof(float)));
    if (size != 0) std::memset(buffer.data(), 0x5A, size * sizeof(float));  // AddressSanitizer watches
  }
  EXPECT_EQ(budget.used(), 0U);
}

TEST(Buffer, FitsExactlyOrNotAtAll) {
  const std::size_t bytes = buffer_bytes(100, sizeof(double));
  MemoryBudget exact(bytes);
  EXPECT_FALSE(refused([&] { const Buffer<double> buffer(exact, 100); }));
  MemoryBudget short_by_one(bytes - 1);
  EXPECT_TRUE(refused([&] { const Buffer<double> buffer(short_by_one, 100); }));
  EXPECT_EQ(short_by_one.used(), 0U);
}

TEST(Buffer, AFailedReplacementLeavesTheOldOneUntouched) {
  MemoryBudget budget(1024);
  Buffer<int> buffer(budget, 100);
  for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = static_cast<int>(i);
  const std::uint64_t used = budget.used();
  EXPECT_TRUE(refused([&] { buffer = Buffer<int>(budget, 200); }));
  EXPECT_EQ(budget.used(), used);
  ASSERT_EQ(buffer.size(), 100U);
  for (std::size_t i = 0; i < buffer.size(); ++i) EXPECT_EQ(buffer[i], static_cast<int>(i));
}

TEST(Buffer, WhatTheMachineRefusesIsGivenBackToTheBudget) {
  MemoryBudget budget;
  EXPECT_TRUE(refused([&] { const Buffer<char> buffer(budget, std::size_t{1} << 60); }));
  EXPECT_EQ(budget.used(), 0U);
}

TEST(Buffer, SizesThatWrapAreRefusedBeforeAnythingIsTaken) {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  MemoryBudget budget;
  EXPECT_TRUE(refused([&] { const Buffer<double> buffer(budget, most / 8 + 1); }));
  EXPECT_TRUE(refused([&] { const Buffer<char> buffer(budget, most); }));
  EXPECT_TRUE(refused([&] { const Buffer<char> buffer(budget, most - 63); }));
  EXPECT_EQ(budget.peak(), 0U);
  EXPECT_TRUE(refused([] { free_aligned(allocate_aligned(most)); }));
  EXPECT_TRUE(refused([] { free_aligned(allocate_aligned(most - 62)); }));
}

TEST(Buffer, AMoveCarriesMemoryAndCount) {
  MemoryBudget budget(4096);
  Buffer<int> source(budget, 10);
  source[9] = 3;
  const std::uint64_t used = budget.used();
  Buffer<int> target = std::move(source);
  EXPECT_EQ(target[9], 3);
  EXPECT_EQ(source.size(), 0U);  // NOLINT(bugprone-use-after-move): what a move leaves is the contract tested
  EXPECT_EQ(source.data(), nullptr);
  EXPECT_EQ(budget.used(), used);
  target = Buffer<int>();
  EXPECT_EQ(budget.used(), 0U);
}

TEST(MemoryThreads, RacingTakersNeverPassTheLimitAndReturnEverything) {
  constexpr std::uint64_t limit = 10'000;
  constexpr int threads = 8;
  MemoryBudget budget(limit);
  std::atomic<int> refusals{0};
  std::atomic<bool> passed_the_limit{false};
  std::vector<std::thread> workers;
  for (int worker = 0; worker < threads; ++worker) {
    workers.emplace_back([&, worker] {
      const Random random(7, static_cast<std::uint64_t>(worker));
      for (std::uint64_t i = 0; i < 5000; ++i) {
        try {
          const Reservation reservation(budget, random.below(i, limit / 4));
          if (budget.used() > limit) passed_the_limit = true;
        } catch (const Error&) {
          ++refusals;
        }
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_FALSE(passed_the_limit);
  EXPECT_LE(budget.peak(), limit);
  EXPECT_EQ(budget.used(), 0U);
  EXPECT_LT(refusals, threads * 5000);
}

TEST(MemoryThreads, TheLastByteGoesToExactlyOneThread) {
  for (int round = 0; round < 50; ++round) {
    MemoryBudget budget(100);
    std::atomic<int> winners{0};
    std::atomic<bool> go{false};
    std::vector<std::thread> workers;
    for (int worker = 0; worker < 4; ++worker) {
      workers.emplace_back([&] {
        while (!go) std::this_thread::yield();
        if (!refused([&] { budget.take(51); })) ++winners;
      });
    }
    go = true;
    for (std::thread& worker : workers) worker.join();
    EXPECT_EQ(winners, 1);
    EXPECT_EQ(budget.used(), 51U);
    EXPECT_EQ(budget.peak(), 51U);
  }
}

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0;
  std::int64_t resident = 0;
  file >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// malloc keeps freed blocks of up to 32 MiB for later.
TEST(Buffer, UnderALimitFreedMemoryIsTheSystemsAgain) {
  MemoryBudget budget(std::uint64_t{1} << 30);
  const auto use = [&](std::size_t bytes) {
    Buffer<std::byte> buffer(budget, bytes);
    std::memset(buffer.data(), 1, buffer.size());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0U);
  };
  use(1 << 20);
  const std::int64_t before = resident_bytes();
  for (const std::size_t mebibytes : {1, 2, 4, 8, 16, 31, 33}) {
    use(mebibytes << 20);
    if (!support::is_sanitized()) {
      EXPECT_LT(resident_bytes() - before, 1 << 20) << mebibytes;
    }
  }
  EXPECT_EQ(budget.used(), 0U);
  Buffer<int> first(budget, 1 << 20);
  first[77] = 5;
  Buffer<int> second = std::move(first);
  EXPECT_EQ(second[77], 5);
}

}  // namespace
}  // namespace nearwise
