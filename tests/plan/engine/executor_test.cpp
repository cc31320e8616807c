// What runs tasks, whatever they do: here they write a few bytes. Who reads ahead, who works on the same, and
// what is removed.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/check.h"
#include "io/container/container_reader.h"
#include "io/expect_error.h"
#include "io/failing_calls.h"
#include "io/temporary_folder.h"
#include "plan/engine/executor_fixture.h"
#include "plan/engine/plan_state.h"
#include "support/sanitizers.h"

namespace nearwise {
namespace {

namespace fs = std::filesystem;

// Would end the whole process, if a thread let it out.
TEST_F(ExecutorThreads, WhatReadingAheadThrowsArrives) {
  plan::Task second = task("second", {"first"});
  second.read_ahead = [](const std::stop_token&) { throw std::runtime_error("no more memory"); };
  const Plan plan = this->plan({task("first"), second});
  EXPECT_THROW(plan.run(context()), std::runtime_error);
  // What was done stays done.
  EXPECT_TRUE(plan.is_done("first"));
  plan.run(context());
  EXPECT_TRUE(plan.is_done("second"));
}

using ExecutorDeathTest = ExecutorThreads;

// Would catch: a std::system_error that leaves Plan::run, or a run that goes on without reading ahead.
TEST_F(ExecutorDeathTest, ReadingAheadThatCannotBeginIsAnError) {
  if (support::is_sanitized()) GTEST_SKIP() << "sanitizers need address space";
  plan::Task last = task("last", {"second"});
  last.read_ahead = [](const std::stop_token&) {};
  const Plan plan = this->plan({task("first"), task("second", {"first"}), last});
  // After the first task, memory for the stack of a thread is refused.
  const auto run = [&] {
    try {
      plan.run(Context::cpu({.threads = 1, .seed = 7}), [](const PlannedTask&, TaskOutcome) {
        const rlimit none = {.rlim_cur = 0, .rlim_max = 0};
        setrlimit(RLIMIT_AS, &none);
      });
    } catch (const Error& error) {
      std::fputs(error.what(), stderr);
      std::error_code ignored;
      fs::remove_all(work.parent_path(), ignored);  // of the process that ends here
      std::_Exit(error.code() == ErrorCode::out_of_memory ? 42 : 2);
    }
    std::_Exit(1);
  };
  // In a new process, without stacks of earlier threads.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run(), testing::ExitedWithCode(42), "refused to start the one that reads ahead");
}

// The file is for another task, which reports it, or has it made again.
TEST_F(ExecutorThreads, FilesThatCannotBeReadAheadAreNoFailure) {
  plan::Task second = task("second", {"first"});
  second.read_ahead = [this](const std::stop_token&) { ContainerReader::open(work / "none.nw"); };
  const Plan plan = this->plan({task("first"), second});
  plan.run(context());
  EXPECT_TRUE(plan.is_done("second"));
}

TEST_F(ExecutorThreads, ReadingAheadEndsWithTheWork) {
  using namespace std::chrono_literals;
  for (const bool fails : {false, true}) {
    std::atomic<bool> begun = false;
    std::atomic<bool> stopped = false;
    plan::Task first = task(fails ? "first_fails" : "first");
    first.work = [&, write = first.work](const Context& own) {
      while (!begun) std::this_thread::sleep_for(1ms);
      if (fails) throw Error(ErrorCode::cancelled, "stopped");
      write(own);
    };
    plan::Task second = task(fails ? "second_fails" : "second", {first.planned.name});
    second.read_ahead = [&](const std::stop_token& stop) {
      begun = true;
      for (int i = 0; i < 20'000 && !stop.stop_requested(); ++i) std::this_thread::sleep_for(1ms);
      stopped = stop.stop_requested();
    };
    const Plan plan = this->plan({first, second});
    if (fails)
      EXPECT_ERROR(plan.run(context()), cancelled, "stopped");
    else
      plan.run(context());
    EXPECT_TRUE(stopped);
  }
}

// A worker that was given up goes on, and is overtaken while it works: what it reads is gone.
TEST_F(ExecutorThreads, TwoAttemptsAtOneTask) {
  for (const bool reads_late : {true, false}) {
    fs::remove_all(work);
    plan::Task is_temporary = task("is_temporary");
    is_temporary.is_temporary = true;
    plan::Task slow = task("slow", {"is_temporary"});
    slow.is_temporary = true;
    const std::vector<plan::Task> tasks = {is_temporary, slow, task("last", {"slow"})};
    const Plan other = plan(tasks);
    other.run_task(context(), "is_temporary");

    std::vector<plan::Task> overtaken = tasks;
    overtaken[1].work = [&](const Context& own) {
      EXPECT_EQ(other.run_task(own, "slow"), TaskOutcome::done);
      EXPECT_EQ(other.run_task(own, "last"), TaskOutcome::done);
      EXPECT_FALSE(fs::exists(is_temporary.output));
      EXPECT_FALSE(fs::exists(slow.output));
      if (reads_late) ContainerReader::open(is_temporary.output);
      slow.work(own);
    };
    const TaskOutcome outcome = plan(overtaken).run_task(context(), "slow");
    EXPECT_EQ(outcome, reads_late ? TaskOutcome::done_before : TaskOutcome::done);
    // Nor does it leave what nobody will read.
    EXPECT_FALSE(fs::exists(slow.output));
    EXPECT_TRUE(other.is_done("slow"));
    EXPECT_EQ(other.run_task(context(), "last"), TaskOutcome::done_before);
  }
}

TEST_F(ExecutorThreads, WhatIsMissingIsSaidWhereNobodyHasDoneTheTask) {
  plan::Task first = task("first");
  first.work = [this](const Context&) { ContainerReader::open(folder / "vectors"); };
  EXPECT_ERROR(plan({first}).run_task(context(), "first"), not_found, "vectors");
}

TEST_F(ExecutorThreads, TasksOfOnePlanAtOnce) {
  std::vector<plan::Task> tasks;
  std::vector<std::string> names;
  for (int i = 0; i < 12; ++i) {
    names.push_back("part-" + std::to_string(i));
    tasks.push_back(task(names.back()));
    tasks.back().is_temporary = true;
  }
  tasks.push_back(task("last", names));
  const Plan plan = this->plan(tasks);
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      // Every task is wanted by two of them.
      for (std::size_t i = 0; i < names.size(); ++i)
        if (i % 4 == static_cast<std::size_t>(thread) || i % 4 == static_cast<std::size_t>(thread + 1) % 4)
          plan.run_task(context(), names[i]);
    });
  threads.clear();
  EXPECT_EQ(plan.run_task(context(), "last"), TaskOutcome::done);
  for (const std::string& name : names) {
    EXPECT_TRUE(plan.is_done(name));
    EXPECT_FALSE(fs::exists(work / (name + ".nw"))) << name;
  }
}

TEST_F(ExecutorThreads, TheResultStaysWhateverItIsCalled) {
  const std::vector<fs::path> names = {work / "first.nw", work / ".." / "work" / "first.nw",
                                       folder / "link" / "first.nw"};
  fs::create_directory_symlink(work, folder / "link");
  for (const fs::path& output : names) {
    fs::remove_all(work);
    plan::Task last = task("last", {"second"});
    last.output = output;
    last.work = [output](const Context&) { write(output, "last"); };
    const Plan plan = this->plan({task("first"), task("second", {"first"}), last});
    // Nothing is made of nothing.
    EXPECT_EQ(plan.remove_work(), 0U);
    EXPECT_FALSE(fs::exists(work));
    plan.run(context());
    EXPECT_GT(plan.remove_work(), 0U);
    EXPECT_FALSE(fs::exists(work / "second.nw"));
    EXPECT_EQ(ContainerReader::open(work / "first.nw").metadata().at("text"), "last") << output;
  }
}

// A killed attempt leaves them, and nobody writes the file again that another attempt has made.
TEST_F(ExecutorThreads, TemporariesOfDeadAttemptsAreRemoved) {
  const std::string suffix = ".nw.99999999.0123456789abcdef.tmp";  // more than Linux has processes
  plan::Task last = task("last", {"first"});
  last.output = folder / "last.nw";
  last.work = [output = last.output](const Context&) { write(output, "last"); };
  const Plan plan = this->plan({task("first"), last});
  const auto leave = [&] {
    testing_io::write_all(work / (".first" + suffix), std::string("half"));
    testing_io::write_all(folder / (".last" + suffix), std::string("half"));
    testing_io::write_all(folder / (".other" + suffix), std::string("half"));  // of another plan
  };
  const auto left = [&] {
    return std::pair(fs::exists(work / (".first" + suffix)), fs::exists(folder / (".last" + suffix)));
  };
  plan.run_task(context(), "first");
  leave();
  plan.run(context());
  EXPECT_EQ(left(), std::pair(false, false));
  leave();
  plan.run(context());  // finds all done
  EXPECT_EQ(left(), std::pair(false, false));
  leave();
  plan.remove_work();
  EXPECT_EQ(left(), std::pair(false, false));
  EXPECT_TRUE(fs::exists(folder / (".other" + suffix)));
}

// Of a process that was killed before it synced its record, which others find.
TEST_F(ExecutorThreads, RecordsAreSyncedBeforeAFileIsDeletedForThem) {
  plan::Task first = task("first");
  first.is_temporary = true;
  const Plan plan = this->plan({first, task("last", {"first"})});
  plan.run(context());
  write(first.output, "first");
  const testing_io::FailingCalls calls({});
  EXPECT_EQ(plan.run_task(context(), "last"), TaskOutcome::done_before);
  const auto& names = calls.names();
  const auto unlink = std::ranges::find(names, "unlink");
  ASSERT_NE(unlink, names.end());
  EXPECT_GE(std::count(names.begin(), unlink, "fsync"), 2);  // manifest and folder
}

// Of a reader that is done, the output is opened to tell; but one that is not done suffices.
TEST_F(ExecutorThreads, ManyReadersAreNotAllOpened) {
  plan::Task read = task("read");
  read.is_temporary = true;
  std::vector<plan::Task> tasks = {read};
  std::vector<std::string> names;
  for (int i = 0; i < 10; ++i) {
    names.push_back("reader-" + std::to_string(i));
    tasks.push_back(task(names.back(), {"read"}));
  }
  tasks.push_back(task("last", names));
  const Plan plan = this->plan(tasks);
  const auto opened = [&] {
    const testing_io::FailingCalls calls({});
    EXPECT_EQ(plan.run_task(context(), names[0]), TaskOutcome::done_before);
    return std::ranges::count(calls.names(), "open");
  };
  plan.run_task(context(), "read");
  plan.run_task(context(), names[0]);
  const auto after_one = opened();
  for (int i = 1; i < 9; ++i) plan.run_task(context(), names[static_cast<std::size_t>(i)]);
  EXPECT_EQ(opened(), after_one);
}

// Nothing is written again of what was deleted for good.
TEST_F(ExecutorThreads, RoomIsAskedForWhatIsStillWritten) {
  constexpr std::uint64_t huge = std::uint64_t{1} << 62;
  plan::Task first = task("first");
  plan::Task second = task("second", {"first"});
  for (plan::Task* made : {&first, &second}) {
    made->is_temporary = true;
    made->planned.written_bytes = huge;
  }
  const Plan plan = this->plan({first, second, task("third", {"second"}), task("last", {"third"})});
  EXPECT_ERROR(plan.check_disk(), cannot_create, "are needed");
  plan.run_task(context(), "first");
  EXPECT_ERROR(plan.check_disk(), cannot_create, "are needed");
  plan.run_task(context(), "second");
  EXPECT_NO_THROW(plan.check_disk());
  plan.run_task(context(), "third");
  ASSERT_FALSE(fs::exists(first.output) || fs::exists(second.output));
  EXPECT_NO_THROW(plan.check_disk());
  // Lost, it needs both again.
  fs::remove(work / "third.nw");
  EXPECT_ERROR(plan.check_disk(), cannot_create, "are needed");
}

TEST_F(ExecutorThreads, AnEarlierResultMakesNoRoom) {
  plan::Task first = task("first");
  first.is_temporary = true;
  first.planned.written_bytes = std::uint64_t{1} << 62;
  const Plan plan = this->plan({first, task("last", {"first"})});
  fs::create_directories(work);
  write(work / "last.nw", "last");
  EXPECT_ERROR(plan.check_disk(), cannot_create, "are needed");
}

TEST_F(ExecutorRepairs, ADamagedInputIsMadeAgain) {
  const Plan plan = this->plan({reader("a"), reader("b", {"a"}), reader("last", {"b"})});
  plan.run_task(context(), "a");
  damage("a");
  EXPECT_EQ(run(plan), (std::vector<std::string>{"a done before", "a repaired", "b done", "last done"}));
  EXPECT_EQ(text("last"), "last(b(a))");
  // The same for one task alone.
  fs::remove_all(work);
  plan.run_task(context(), "a");
  damage("a");
  EXPECT_EQ(plan.run_task(context(), "b"), TaskOutcome::done);
  EXPECT_EQ(text("b"), "b(a)");
}

TEST_F(ExecutorRepairs, SoAreTheDeletedFilesThatItNeeds) {
  const Plan plan = this->plan({reader("a", {}, true), reader("b", {"a"}, true), reader("c", {"b"}),
                                reader("other", {}), reader("last", {"c", "other"})});
  for (const char* const name : {"a", "b", "c", "other"}) plan.run_task(context(), name);
  EXPECT_FALSE(fs::exists(work / "a.nw"));
  EXPECT_FALSE(fs::exists(work / "b.nw"));
  damage("c");
  EXPECT_EQ(run(plan).back(), "last done");
  EXPECT_EQ(text("last"), "last(c(b(a)))(other)");
  EXPECT_EQ(runs, (std::map<std::string, int>{{"a", 2}, {"b", 3}, {"c", 3}, {"other", 1}, {"last", 2}}));
  EXPECT_FALSE(fs::exists(work / "a.nw"));
  EXPECT_FALSE(fs::exists(work / "b.nw"));
}

TEST_F(ExecutorRepairs, SoIsWhatItReadsOfEarlierTasks) {
  plan::Task last = reader("last", {"b"});
  last.work = [this, make = last.work](const Context& own) {
    text("a");
    make(own);
  };
  const Plan plan = this->plan({reader("a"), reader("b", {"a"}), last});
  plan.run_task(context(), "a");
  plan.run_task(context(), "b");
  damage("a");
  EXPECT_EQ(run(plan),
            (std::vector<std::string>{"a done before", "b done before", "a repaired", "last done"}));
}

TEST_F(ExecutorRepairs, AnInputThatAnotherWorkerRepairsIsReadAgain) {
  plan::Task last = reader("last", {"a"});
  last.work = [this, make = last.work](const Context& own) {
    const fs::path input = work / "a.nw";
    const fs::path missing = work / "a.missing";
    if (runs["last"] != 0) return make(own);
    fs::rename(input, missing);
    EXPECT_THROW(make(own), Error);
    fs::rename(missing, input);  // as the other worker does, before this one looks for what to repair
    fail(ErrorCode::not_found, "open {}", input.native());
  };
  const Plan plan = this->plan({reader("a"), last});
  EXPECT_EQ(run(plan), (std::vector<std::string>{"a done", "last done"}));
  EXPECT_EQ(text("last"), "last(a)");
}

TEST_F(ExecutorRepairs, ADamagedResultIsNotDone) {
  const Plan plan = this->plan({reader("a"), reader("last", {"a"})});
  run(plan);
  damage("last");
  EXPECT_FALSE(plan.is_done("last"));
  EXPECT_EQ(plan.remove_work(), 0U);
  EXPECT_EQ(run(plan), (std::vector<std::string>{"a done before", "last done"}));
  EXPECT_EQ(run(plan), (std::vector<std::string>{"last done before"}));
  // After the work files are gone, all of it is made again.
  EXPECT_GT(plan.remove_work(), 0U);
  damage("last");
  EXPECT_EQ(run(plan), (std::vector<std::string>{"a done", "last done"}));
  EXPECT_EQ(text("last"), "last(a)");
}

TEST_F(ExecutorRepairs, ADamagedDecisionIsMadeAgain) {
  plan::Task decide = reader("decide");
  plan::Task optional = reader("optional");
  optional.planned.if_needed = true;
  optional.decided_by = "decide";
  optional.needed = [this] { return text("decide") != "decide"; };
  const Plan plan = this->plan({decide, optional, reader("last", {"decide"})});
  plan.run_task(context(), "decide");
  damage("decide");
  EXPECT_EQ(run(plan), (std::vector<std::string>{"decide done before", "decide repaired",
                                                 "optional not needed", "last done"}));
}

TEST_F(ExecutorRepairs, DamageThatComesBackEndsTheRun) {
  plan::Task bad = reader("bad");
  bad.work = [this, make = bad.work](const Context& own) {
    make(own);
    damage("bad");
  };
  EXPECT_ERROR(run(plan({bad, reader("last", {"bad"})})), corrupt, "bad.nw");
  EXPECT_EQ(runs["bad"], 3);
}

// Would catch: a result that is called done by its header alone.
TEST_F(ExecutorRepairs, AResultIsReadBeforeItIsCalledDone) {
  int damaged = 1;  // attempts whose output is
  plan::Task last = reader("last", {"a"});
  last.work = [&, make = last.work](const Context& own) {
    make(own);
    if (runs["last"] <= damaged) damage("last");
  };
  const Plan plan = this->plan({reader("a"), last});
  EXPECT_EQ(run(plan), (std::vector<std::string>{"a done", "last done"}));
  EXPECT_EQ(text("last"), "last(a)");
  EXPECT_EQ(runs, (std::map<std::string, int>{{"a", 1}, {"last", 2}}));
  EXPECT_TRUE(plan.is_done("last"));
  // The same for the task alone, and where no attempt succeeds.
  fs::remove(last.output);
  runs.clear();
  EXPECT_EQ(plan.run_task(context(), "last"), TaskOutcome::done);
  EXPECT_EQ(text("last"), "last(a)");
  fs::remove_all(work);
  runs.clear();
  damaged = 100;
  EXPECT_ERROR(run(plan), corrupt, "last.nw");
  EXPECT_EQ(runs, (std::map<std::string, int>{{"a", 1}, {"last", 3}}));
  EXPECT_FALSE(plan.is_done("last"));
}

// Its checksum is right, so that it was written so.
TEST_F(ExecutorRepairs, AManifestOfOtherRecordsSaysWhatToDelete) {
  const Plan plan = this->plan({reader("a"), reader("last", {"a"})});
  run(plan);
  const fs::path manifest = work / "manifest";
  plan::Manifest(manifest).append({{"task", "a"}});
  EXPECT_ERROR(run(plan), corrupt, "delete " + manifest.string());
  fs::remove(manifest);
  EXPECT_EQ(run(plan), (std::vector<std::string>{"a done", "last done"}));
}

TEST_F(ExecutorRepairs, ADamagedManifestCostsTheTasksOfItsLines) {
  const Plan plan = this->plan({reader("a"), reader("b", {"a"}), reader("last", {"b"})});
  plan.run_task(context(), "a");
  plan.run_task(context(), "b");
  const auto manifest = testing_io::read_all(work / "manifest");
  for (std::size_t i = 0; i < manifest.size(); ++i) {
    auto damaged = manifest;
    damaged[i] ^= std::byte{2};
    testing_io::write_all(work / "manifest", damaged);
    fs::remove(work / "last.nw");
    runs.clear();
    EXPECT_EQ(run(plan).back(), "last done") << i;
    EXPECT_EQ(text("last"), "last(b(a))") << i;
    EXPECT_EQ(run(plan), (std::vector<std::string>{"last done before"})) << i;
    EXPECT_LE(runs["a"] + runs["b"], 2) << i;
  }
}

TEST_F(ExecutorRepairs, RecordsOfAnotherPlanAreNotUsed) {
  const std::vector<plan::Task> tasks = {reader("a"), reader("last", {"a"})};
  auto state = std::make_unique<Plan::State>();
  state->identity = {{"kind", "another"}};
  state->folder = work;
  state->output = tasks.back().output;
  state->seed = 7;
  state->tasks = tasks;
  const Plan other(std::move(state));
  run(other);
  EXPECT_ERROR(run(plan(tasks)), invalid_argument, "belongs to another plan");
  // Nor without the line that identifies it.
  auto manifest = testing_io::read_all(work / "manifest");
  manifest[2] ^= std::byte{1};
  testing_io::write_all(work / "manifest", manifest);
  EXPECT_ERROR(run(plan(tasks)), invalid_argument, "belongs to another plan");
  // Its own plan goes on.
  EXPECT_EQ(run(other).back(), "last done before");
}

}  // namespace
}  // namespace nearwise
