// What the threads of members throw, and threads that cannot be started, arrive as errors that name a device.
#include "shard/at_once.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "support/error_of.h"
#include "support/sanitizers.h"

namespace nearwise::shard {
namespace {

using support::error_of;

void run_on_two(const std::function<void(std::size_t)>& body) {
  const Context context = Context::cpu({.threads = 1});
  const std::vector<Member> members = {{.context = context, .size = 1}, {.context = context, .size = 1}};
  run_at_once(context, members,
              {.operation = "test", .units = {1, 1}, .run = [&](std::size_t member, const Context&) {
                 body(member);
               }});
}

TEST(AtOnceThreads, WhatATaskThrowsIsAnErrorThatNamesItsDevice) {
  const Error memory = error_of([] {
    run_on_two([](std::size_t member) {
      if (member == 1) throw std::bad_alloc();
    });
  });
  EXPECT_EQ(memory.code(), ErrorCode::out_of_memory);
  EXPECT_STREQ(memory.what(), "memory: the machine has no more memory (on cpu, number 2 of 2)");
  const Error system = error_of([] {
    run_on_two([](std::size_t member) {
      if (member == 0) throw std::system_error(std::make_error_code(std::errc::no_lock_available), "a lock");
    });
  });
  EXPECT_EQ(system.code(), ErrorCode::internal);
  EXPECT_STREQ(system.what(), "a lock: No locks available (on cpu, number 1 of 2)");
}

TEST(AtOnceThreads, WhatAProgressCallbackThrowsArrivesAsItIs) {
  EXPECT_THROW(run_on_two([](std::size_t) { throw std::out_of_range("callback"); }), std::out_of_range);
}

// Exits with 42 after printing what it says of a thread that cannot be started.
[[noreturn]] void run_without_memory() {
  const Context context = Context::cpu({.threads = 1});
  const std::vector<Member> members = {{.context = context, .size = 1}, {.context = context, .size = 1}};
  const Work work = {.operation = "test", .units = {1, 1}, .run = [](std::size_t, const Context&) {}};
  // Space in the heap for small allocations.
  void* const volatile space = std::malloc(std::size_t{64} << 10);
  std::free(space);
  const rlimit none = {.rlim_cur = 0, .rlim_max = 0};
  setrlimit(RLIMIT_AS, &none);
  try {
    run_at_once(context, members, work);
    std::_Exit(1);
  } catch (const Error& error) {
    std::fputs(error.what(), stderr);
    std::_Exit(error.code() == ErrorCode::out_of_memory ? 42 : 2);
  } catch (const std::exception&) {
    std::_Exit(3);
  }
}

TEST(AtOnceThreadsDeathTest, AThreadThatCannotBeStartedIsAnErrorThatNamesItsDevice) {
  if (support::is_sanitized()) GTEST_SKIP() << "sanitizers need address space";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_without_memory(), testing::ExitedWithCode(42),
              "the system refused to start the thread of a device .*on cpu, number 1 of 2");
}

}  // namespace
}  // namespace nearwise::shard
