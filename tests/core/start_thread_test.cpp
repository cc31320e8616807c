// Threads that start work with the signals of the application blocked; those that do not are errors with a
// name.
#include "core/start_thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stop_token>
#include <thread>
#include <utility>

#include "nearwise/error.h"
#include "support/sanitizers.h"

namespace nearwise {
namespace {

TEST(StartThread, RunsTheBodyUntilItIsToldToStop) {
  std::atomic<int> ended = 0;
  {
    std::jthread thread = start_thread("a part", [&](const std::stop_token& stop) {
      while (!stop.stop_requested()) std::this_thread::yield();
      ++ended;
    });
    EXPECT_TRUE(thread.joinable());
    const std::jthread moved = std::move(thread);
    EXPECT_EQ(ended, 0);
  }
  EXPECT_EQ(ended, 1);
}

TEST(StartThread, ItsThreadsLeaveTheSignalsOfTheApplicationToOthers) {
  sigset_t blocked;
  sigemptyset(&blocked);
  start_thread("a part", [&](const std::stop_token&) {
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  }).join();
  EXPECT_EQ(sigismember(&blocked, SIGINT), 1);
  EXPECT_EQ(sigismember(&blocked, SIGTERM), 1);
  EXPECT_EQ(sigismember(&blocked, SIGSEGV), 0);
}

// Exits with 42 after printing what it says of a thread that cannot be started.
[[noreturn]] void start_without_memory() {
  const rlimit none = {.rlim_cur = 0, .rlim_max = 0};
  setrlimit(RLIMIT_AS, &none);
  try {
    start_thread("a part", [](const std::stop_token&) {}).join();
    std::_Exit(1);
  } catch (const Error& error) {
    std::fputs(error.what(), stderr);
    std::_Exit(error.code() == ErrorCode::out_of_memory ? 42 : 2);
  }
}

TEST(StartThreadDeathTest, WhatTheSystemRefusesIsAnErrorWithItsName) {
  if (support::is_sanitized()) GTEST_SKIP() << "sanitizers need address space";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(start_without_memory(), testing::ExitedWithCode(42),
              "threads: the system refused to start a part .*: ask for fewer threads, or raise its limits");
}

}  // namespace
}  // namespace nearwise
