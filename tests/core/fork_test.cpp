// fork() while other threads work: the child's tasks run, and what others were changing is whole.
#include "core/fork.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "core/parallel.h"

namespace nearwise {
namespace {

// Exit status of a forked process: 0 if work() returned true; -1 if it was killed, as it is after 20 s.
int status_of_child(const std::function<bool()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(work() ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool runs_tasks(const Threads& threads) {
  std::atomic<int> sum = 0;
  threads.for_each(100, [&](std::size_t task) {
    threads.for_each(2, [&](std::size_t) { sum += static_cast<int>(task); });
  });
  return sum == 9900;
}

// Calls work() again and again on a thread of its own.
class Busy {
 public:
  explicit Busy(const std::function<void()>& work)
      : thread_([this, work] {
          while (!stop_) work();
        }) {}
  ~Busy() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

TEST(Fork, ChildrenOfABusyProcessRunTasks) {
  EXPECT_FALSE(in_forked_child());
  const Threads threads(4);
  const Busy busy([&] { runs_tasks(threads); });
  for (int i = 0; i < 100; ++i)
    ASSERT_EQ(status_of_child([&] {
                const Threads own(3);
                return in_forked_child() && runs_tasks(threads) && runs_tasks(own);
              }),
              0)
        << "fork " << i;
  EXPECT_TRUE(runs_tasks(threads));
}

TEST(Fork, ChildrenEndLikeOtherProcesses) {
  auto threads = std::make_unique<Threads>(4);
  const Busy busy([other = std::make_shared<Threads>(4)] { runs_tasks(*other); });
  ASSERT_EQ(status_of_child([&] {
              threads.reset();
              return status_of_child([] { return runs_tasks(Threads(2)); }) == 0;
            }),
            0);
}

TEST(Fork, WaitsForTheEndOfASection) {
  // Plain memory that another thread changes; only the sections make it consistent.
  int first = 0;
  int second = 0;
  const Busy busy([&] {
    const NoFork whole;
    ++first;
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    ++second;
  });
  for (int i = 0; i < 50; ++i)
    ASSERT_EQ(status_of_child([&] {
                const NoFork usable;
                return first == second;
              }),
              0)
        << "fork " << i;
}

}  // namespace
}  // namespace nearwise
