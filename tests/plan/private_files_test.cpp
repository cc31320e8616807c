// Work files are copies of the vectors: in a work folder that anybody can list, nobody may read them who may
// not read the vectors. Here, above the plans, because all of them write such files.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "io/expect_error.h"
#include "io/files/file_calls.h"
#include "io/temporary_folder.h"
#include "nearwise/nearwise.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using testing_io::TemporaryFolder;
namespace fs = std::filesystem;

constexpr mode_t as_others = 022;  // the umask of most users

mode_t mode_of(const fs::path& path) {
  FileStatus status{};
  if (system_file_calls().stat(path.c_str(), &status) != 0)
    throw std::runtime_error("no such file: " + path.string());
  return status.st_mode & 07777;
}

// While it lives, notes the modes with which files are created in a folder, temporaries included, and lets
// one rename fail.
class CreatedFiles {
 public:
  // failing_rename: 1: the first; 0: none.
  explicit CreatedFiles(fs::path folder, int failing_rename = 0)
      : folder_(std::move(folder)), failing_rename_(failing_rename) {
    current() = this;
    static const FileCalls calls = [] {
      FileCalls own = system_file_calls();
      own.open = [](const char* path, int flags, mode_t mode) {
        if ((flags & O_CREAT) != 0) current()->add(path, mode);
        return system_file_calls().open(path, flags, mode);
      };
      own.rename = [](const char* from, const char* to) {
        if (!current()->fails_now()) return system_file_calls().rename(from, to);
        errno = EIO;
        return -1;
      };
      return own;
    }();
    replace_file_calls(&calls);
  }
  ~CreatedFiles() { replace_file_calls(nullptr); }
  CreatedFiles(const CreatedFiles&) = delete;
  CreatedFiles& operator=(const CreatedFiles&) = delete;

  // All permissions that any of them has.
  mode_t widest() const { return widest_; }
  std::size_t count() const { return count_; }

 private:
  static CreatedFiles*& current() {
    static CreatedFiles* files = nullptr;
    return files;
  }
  void add(const fs::path& path, mode_t mode) {
    const std::lock_guard lock(mutex_);
    FileStatus there{};
    if (path.parent_path() != folder_ || system_file_calls().stat(path.c_str(), &there) == 0) return;
    widest_ |= mode & ~as_others;
    ++count_;
  }
  bool fails_now() {
    const std::lock_guard lock(mutex_);
    return failing_rename_ != 0 && --failing_rename_ == 0;
  }

  const fs::path folder_;
  std::mutex mutex_;
  int failing_rename_;
  mode_t widest_ = 0;
  std::size_t count_ = 0;
};

struct Kind {
  std::string name;
  std::uint64_t memory;
  std::function<Plan(const Context&, const PlanFiles&)> plan;
};

std::vector<Kind> kinds() {
  constexpr std::uint64_t mib = std::uint64_t{1} << 20;
  return {{"partitions", 40 * mib,
           [](const Context& context, const PlanFiles& files) {
             return plan_graph(context, files, {.degree = 4});
           }},
          {"pairs", 11 * mib,
           [](const Context& context, const PlanFiles& files) {
             return plan_graph(context, files, {.degree = 4, .method = GraphPlanMethod::pairs});
           }},
          {"index", 40 * mib,
           [](const Context& context, const PlanFiles& files) {
             return plan_index(context, files,
                               {.index = {.lists = 6, .encoding = Pq{.code_bytes = 4, .bits = 4}},
                                .calibration = {.queries = 20}});
           }},
          {"graph_index", 40 * mib,
           [](const Context& context, const PlanFiles& files) {
             return plan_graph_index(context, files,
                                     {.index = {.degree = 16}, .calibration = {.sample = 10}});
           }},
          {"join_of_pairs", 18 * mib,
           [](const Context& context, const PlanFiles& files) {
             return plan_threshold_join(context, files, 4.0F, {.method = JoinMethod::pairs});
           }},
          {"join_of_partitions", 18 * mib,
           [](const Context& context, const PlanFiles& files) {
             return plan_threshold_join(context, files, 0.5F, {.method = JoinMethod::partitions});
           }},
          {"deduplication", 18 * mib, [](const Context& context, const PlanFiles& files) {
             return plan_dedup(context, files, 4.0F, {.dedup = {.keep = KeptRow::medoid}});
           }}};
}

// Files of vectors with given permissions, in a work folder of the user's that others can list.
class PrivateFiles : public ::testing::TestWithParam<Kind> {
 protected:
  PrivateFiles() : umask_(::umask(as_others)) {
    const support::Rows rows(support::generate(support::Kind::normal, 600, 8, 4), ElementType::f32);
    VectorWriter writer(files.vectors, ElementType::f32, 8);
    writer.append(rows);
    writer.commit();
    fs::create_directory(files.work);
    fs::permissions(files.work, fs::perms(0755));
  }
  ~PrivateFiles() override { ::umask(umask_); }

  void allow(unsigned mode) const { fs::permissions(files.vectors, fs::perms(mode)); }
  Context context() const {
    return Context::cpu({.threads = 2, .memory_limit = GetParam().memory, .seed = 3});
  }
  Plan plan() const { return GetParam().plan(context(), files); }
  // Of the files in the work folder, all of which must have this one.
  void expect_modes(mode_t expected) const {
    std::size_t found = 0;
    for (const auto& entry : fs::directory_iterator(files.work)) {
      EXPECT_EQ(mode_of(entry.path()), expected) << entry.path();
      ++found;
    }
    EXPECT_GE(found, 3U);
    EXPECT_EQ(mode_of(files.work), 0755U);  // it is the user's
  }

  const TemporaryFolder folder;
  const PlanFiles files = {
      .vectors = folder / "vectors.fbin", .work = folder / "work", .output = folder / "result.nw"};

 private:
  const mode_t umask_;
};
INSTANTIATE_TEST_SUITE_P(OfPlans, PrivateFiles, ::testing::ValuesIn(kinds()),
                         [](const auto& kind) { return kind.param.name; });

TEST_P(PrivateFiles, AreClosedToThoseWhoMustNotReadTheVectors) {
  allow(0600);
  {
    const CreatedFiles created(files.work);
    plan().run(context());
    EXPECT_EQ(created.widest(), 0600U);
    EXPECT_GE(created.count(), 5U);
  }
  expect_modes(0600);
  EXPECT_EQ(mode_of(files.output), 0644U);
  plan().remove_work();
  expect_modes(0600);
}

TEST_P(PrivateFiles, AreClosedAfterAnInterruption) {
  allow(0600);
  // While the first task publishes its file, the manifest begins, and the second task publishes.
  for (const int failing : {1, 2, 3}) {
    const CreatedFiles created(files.work, failing);
    EXPECT_ERROR(plan().run(context()), io, "Input/output error");
    EXPECT_EQ(created.widest(), 0600U) << failing;
  }
  expect_modes(0600);
  // The caller stops after a task.
  int tasks = 0;
  EXPECT_THROW(plan().run(context(),
                          [&](const PlannedTask&, TaskOutcome outcome) {
                            if (outcome == TaskOutcome::done && ++tasks == 1)
                              throw std::runtime_error("stop");
                          }),
               std::runtime_error);
  expect_modes(0600);
  // Task by task, each by a plan of its own as in another process, and once more for a damaged file.
  const Plan listed = plan();
  for (const PlannedTask& task : listed.tasks()) {
    const CreatedFiles created(files.work);
    plan().run_task(context(), task.name);
    EXPECT_EQ(created.widest() & 077U, 0U) << task.name;
  }
  expect_modes(0600);
  testing_io::write_all(files.work / (listed.tasks().front().name + ".nw"), std::string("damaged"));
  fs::remove(files.output);
  {
    const CreatedFiles created(files.work);
    plan().run(context());
    EXPECT_EQ(created.widest(), 0600U);
  }
  expect_modes(0600);
  EXPECT_EQ(mode_of(files.output), 0644U);
}

TEST_P(PrivateFiles, OfPublicVectorsFollowTheUmask) {
  allow(0644);
  plan().run(context());
  expect_modes(0644);
  EXPECT_EQ(mode_of(files.output), 0644U);
}

TEST_P(PrivateFiles, OfVectorsOfAGroupAreTheGroups) {
  allow(0640);
  plan().run(context());
  expect_modes(0640);
  EXPECT_EQ(mode_of(files.output), 0644U);
}

// The permissions of a work file that is replaced are not kept where those of the vectors were taken away.
TEST_P(PrivateFiles, OfVectorsThatWereMadePrivateAreClosedWhenMadeAgain) {
  allow(0644);
  plan().run(context());
  const fs::path input = files.work / (plan().tasks().front().name + ".nw");
  EXPECT_EQ(mode_of(input), 0644U);
  allow(0600);
  testing_io::write_all(input, std::string("damaged"));
  fs::remove(files.output);
  plan().run(context());
  EXPECT_EQ(mode_of(input), 0600U);
  EXPECT_EQ(mode_of(files.output), 0644U);
}

}  // namespace
}  // namespace nearwise
