// What a change or a search of an inverted file tells of itself, and that one which stops half-way leaves
// nothing behind.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backend/stages.h"
#include "io/temporary_folder.h"
#include "nearwise/ivf.h"
#include "support/error_of.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::error_of;
using support::Problem;

constexpr std::size_t base_rows = 700;

const Problem& problem() {
  static const Problem made = support::make_problem({.rows = base_rows, .queries = 20, .dim = 9, .seed = 71});
  return made;
}

// Every report is let through: its clock runs fast.
struct Reports {
  std::vector<Progress> all;

  Context context(int threads, const std::function<void(const Progress&)>& also = {}) {
    return Context::cpu(
        {.threads = threads,
         .progress =
             [this, also](const Progress& now) {
               all.push_back(now);
               if (also) also(now);
             },
         .clock = [seconds = std::make_shared<std::atomic<int>>(0)] { return ++*seconds * 1.0; }});
  }

  void expect_only(const std::string& operation, std::uint64_t total) const {
    ASSERT_GT(all.size(), 1U) << operation;
    std::uint64_t before = 0;
    for (const Progress& now : all) {
      EXPECT_EQ(now.operation, operation);
      EXPECT_EQ(now.total, total);
      EXPECT_GE(now.done, before);
      before = now.done;
    }
    EXPECT_EQ(before, total);
  }
};

Ivf trained() {
  return Ivf::train(Context::cpu({.threads = 1}), problem().base,
                    {.lists = 12, .encoding = Pq{.code_bytes = 3, .bits = 4}});
}

std::vector<std::byte> bytes_of(const Ivf& index) {
  const testing_io::TemporaryFolder folder;
  save(index, folder / "index.nw");
  return testing_io::read_all(folder / "index.nw");
}

std::vector<Id> every_third() {
  std::vector<Id> ids;
  for (Id id = 0; id < static_cast<Id>(base_rows); id += 3) ids.push_back(id);
  return ids;
}

// Ids that no other vector has.
std::vector<Id> later_ids(Id first = static_cast<Id>(base_rows)) {
  std::vector<Id> ids(base_rows);
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

TEST(IvfProgressThreads, EveryOperationCountsItsOwnRows) {
  for (const int threads : {1, 3}) {
    Ivf index = trained();
    Ivf other = index.empty_copy();
    {
      Reports reports;
      index.add(reports.context(threads), problem().base);
      reports.expect_only("add", Stages::total);
    }
    other.add(Context::cpu({.threads = 1}), problem().base, later_ids());
    {
      Reports reports;
      index.merge(reports.context(threads), other);
      reports.expect_only("merge", base_rows);
    }
    {
      Reports reports;
      index.remove(reports.context(threads), every_third());
      reports.expect_only("remove", every_third().size());
    }
    // More than are searched at a time.
    const support::Rows many(support::generate(support::Kind::normal, 20'000, 9, 5), ElementType::f32);
    Reports reports;
    index.search(reports.context(threads), many, 1, {.probes = 1});
    reports.expect_only("search", 20'000);
  }
}

// Every row once, though its id and its code are written one after the other.
TEST(IvfProgressThreads, MergedFilesCountTheirRows) {
  const testing_io::TemporaryFolder folder;
  Ivf index = trained();
  index.add(Context::cpu({.threads = 1}), problem().base);
  save(index, folder / "part.nw");
  std::vector<std::filesystem::path> files = {folder / "part.nw"};
  for (const Id first : {1'000, 2'000}) {
    Ivf more = index.empty_copy();
    more.add(Context::cpu({.threads = 1}), problem().base, later_ids(first));
    files.push_back(folder / fmt::format("part{}.nw", first));
    save(more, files.back());
  }
  Reports reports;
  merge_ivf_files(reports.context(1), files, folder / "merged.nw");
  reports.expect_only("merge", 3 * base_rows);
  // Ids are 8 bytes of 47.
  const auto ids = std::ranges::lower_bound(reports.all, 3 * base_rows * 8 / 47, {}, &Progress::done);
  EXPECT_EQ(ids - reports.all.begin(), 12 * 3 - 1);
}

// Cancelled by its own first report: at that moment some lists are done and others are not.
TEST(IvfProgressThreads, WhatIsCancelledLeavesTheRowsAsTheyWere) {
  const Context plain = Context::cpu({.threads = 1});
  Ivf index = trained();
  Ivf other = index.empty_copy();
  index.add(plain, problem().base);
  other.add(plain, problem().base, later_ids());
  const std::vector<std::byte> before = bytes_of(index);
  const std::vector<std::function<void(const Context&)>> calls = {
      [&](const Context& context) { index.merge(context, other); },
      [&](const Context& context) { index.remove(context, every_third()); },
      [&](const Context& context) {
        index.add(context,
                  support::Rows(support::generate(support::Kind::normal, 40'000, 9, 6), ElementType::f32));
      },
  };
  for (std::size_t call = 0; call < calls.size(); ++call) {
    Reports reports;
    std::optional<Context> context;
    context = reports.context(1, [&](const Progress&) { context->cancel(); });
    EXPECT_EQ(error_of([&] { calls[call](*context); }).code(), ErrorCode::cancelled) << call;
    EXPECT_EQ(index.size(), base_rows) << call;
    EXPECT_EQ(bytes_of(index), before) << call;
  }
  const Context cancelled = plain.with_progress({});
  cancelled.cancel();
  EXPECT_EQ(error_of([&] { index.search(cancelled, problem().queries, 3); }).code(), ErrorCode::cancelled);
  // Nothing is broken: the same calls work.
  index.merge(plain, other);
  EXPECT_EQ(index.remove(plain, every_third()), every_third().size());
  EXPECT_EQ(index.size(), 2 * base_rows - every_third().size());
}

// While lists are reserved, rows appended, or ids entered in the table.
TEST(IvfProgressThreads, AMergeThatIsCancelledAtAnyMomentLeavesTheRowsAsTheyWere) {
  using Clock = std::chrono::steady_clock;
  constexpr int moments = 24;
  const Context plain = Context::cpu({.threads = 1});
  const Ivf empty = trained();
  Ivf other = empty.empty_copy();
  const support::Rows many(support::generate(support::Kind::normal, 60'000, 9, 7), ElementType::f32);
  std::vector<Id> ids(60'000);
  std::iota(ids.begin(), ids.end(), static_cast<Id>(base_rows));
  other.add(plain, many, ids);
  const auto filled = [&] {
    Ivf index = empty.empty_copy();
    index.add(plain, problem().base);
    EXPECT_TRUE(index.contains(0));  // makes the table
    return index;
  };
  Ivf merged = filled();
  const std::vector<std::byte> before = bytes_of(merged);
  const auto began = Clock::now();
  merged.merge(plain, other);
  const auto duration = Clock::now() - began;
  const std::vector<std::byte> after = bytes_of(merged);
  int cancelled = 0;
  for (int moment = 0; moment < moments; ++moment) {
    Ivf index = filled();
    const Context context = plain.with_progress({});
    std::atomic<bool> has_begun = false;
    std::jthread canceller([&] {
      while (!has_begun) std::this_thread::yield();
      const auto end = Clock::now() + duration * moment / moments;
      while (Clock::now() < end) {
      }
      context.cancel();
    });
    has_begun = true;
    const Error error = error_of([&] { index.merge(context, other); });
    canceller.join();
    if (error.code() == ErrorCode::cancelled) {
      ++cancelled;
      EXPECT_EQ(index.size(), base_rows);
      EXPECT_TRUE(index.contains(static_cast<Id>(base_rows) - 1));
      EXPECT_FALSE(index.contains(static_cast<Id>(base_rows)));
      EXPECT_FALSE(index.contains(ids.back()));
      EXPECT_EQ(bytes_of(index), before);
      index.merge(plain, other);
    }
    EXPECT_TRUE(index.contains(ids.back()));
    EXPECT_EQ(bytes_of(index), after);
  }
  EXPECT_GE(cancelled, 1);
}

// Lists of a mapped index are copied before they change: for the last of them there is no memory.
TEST(IvfProgressThreads, WhereMemoryEndsTheRowsAreAsTheyWere) {
  const testing_io::TemporaryFolder folder;
  Ivf built = trained();
  built.add(Context::cpu({.threads = 1}), problem().base);
  save(built, folder / "index.nw");
  Ivf more = built.empty_copy();
  more.add(Context::cpu({.threads = 1}), problem().base, later_ids());
  for (const bool merges : {false, true}) {
    const Context small = Context::cpu({.threads = 1, .memory_limit = 5'000});
    Ivf index = load_ivf(small, folder / "index.nw");
    const Context working = Context::cpu({.threads = 1});
    const Error error = error_of([&] {
      if (merges)
        index.merge(working, more);
      else
        index.remove(working, every_third());
    });
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
    EXPECT_EQ(index.size(), base_rows);
    EXPECT_EQ(bytes_of(index), testing_io::read_all(folder / "index.nw"));
  }
}

// Would catch: a silent context that nobody can stop, or that still reports.
TEST(IvfProgressThreads, AContextWithoutProgressIsCancelledWithItsParent) {
  Reports reports;
  const Context parent = reports.context(1);
  const Context quiet = parent.without_progress();
  knn(quiet, problem().queries, problem().base, 2);
  EXPECT_TRUE(reports.all.empty());
  EXPECT_FALSE(quiet.cancelled());
  parent.cancel();
  EXPECT_TRUE(quiet.cancelled());
  EXPECT_EQ(error_of([&] { knn(quiet, problem().queries, problem().base, 2); }).code(), ErrorCode::cancelled);
}

}  // namespace
}  // namespace nearwise
