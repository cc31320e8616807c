// kill -9 in the middle of a save: the file is the complete old one or the complete new one.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/math/random.h"
#include "io/files/file_calls.h"
#include "io/temporary_folder.h"
#include "nearwise/storage.h"

namespace nearwise {
namespace {

using testing_io::TemporaryFolder;

constexpr std::size_t rows = 4000;
constexpr std::size_t k = 10;

SavedNeighbors filled(Id value) {
  SavedNeighbors result;
  result.neighbors.ids = Matrix<Id>(rows, k);
  result.neighbors.distances = Matrix<float>(rows, k);
  std::fill_n(result.neighbors.ids.data(), rows * k, value);
  std::fill_n(result.neighbors.distances.data(), rows * k, static_cast<float>(value));
  return result;
}

// The one value a file is full of.
Id content(const std::filesystem::path& path) {
  const SavedNeighbors found = load_neighbors(path);
  const Id value = found.neighbors.ids(0, 0);
  EXPECT_EQ(std::count(found.neighbors.ids.data(), found.neighbors.ids.data() + rows * k, value),
            static_cast<std::ptrdiff_t>(rows * k));
  EXPECT_EQ(found.neighbors.distances(rows - 1, k - 1), static_cast<float>(value));
  return value;
}

void kill_and_wait(pid_t child) {
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the child ended by itself: " << status;
}

TEST(Crash, KilledAtARandomMoment) {
  const TemporaryFolder folder;
  const auto path = folder / "a.nw";
  const SavedNeighbors contents[] = {filled(1), filled(2)};
  save(contents[0], path);
  const Random random(7);
  int left_behind = 0;
  for (std::uint64_t trial = 0; trial < 20; ++trial) {
    const pid_t child = fork();
    if (child == 0) {
      for (int i = 1;; ++i) save(contents[i % 2], path);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(trial, 40'000)));
    kill_and_wait(child);
    const Id found = content(path);
    EXPECT_TRUE(found == 1 || found == 2);
    left_behind += folder.names().size() > 1 ? 1 : 0;
    save(contents[0], path);  // removes what the dead process left
    EXPECT_EQ(folder.names(), std::vector<std::string>{"a.nw"});
  }
  RecordProperty("temporaries_left_behind", left_behind);
}

int calls_to_live = 0;

void die_when_due() {
  if (--calls_to_live == 0) raise(SIGKILL);
}

// Dies at the n-th system call, for every n: before it is made, so all those before it were.
TEST(Crash, KilledAtEverySystemCall) {
  static const FileCalls deadly = {
      .open =
          [](const char* path, int flags, mode_t mode) {
            die_when_due();
            return system_file_calls().open(path, flags, mode);
          },
      .open_to_read = system_file_calls().open_to_read,
      .pread = system_file_calls().pread,
      .mmap = system_file_calls().mmap,
      .write =
          [](int file, const void* data, std::size_t bytes) {
            die_when_due();
            return system_file_calls().write(file, data, bytes);
          },
      .pwrite =
          [](int file, const void* data, std::size_t bytes, off_t offset) {
            die_when_due();
            return system_file_calls().pwrite(file, data, bytes, offset);
          },
      .fchmod =
          [](int file, mode_t mode) {
            die_when_due();
            return system_file_calls().fchmod(file, mode);
          },
      .fchown =
          [](int file, uid_t owner, gid_t group) {
            die_when_due();
            return system_file_calls().fchown(file, owner, group);
          },
      .flock =
          [](int file, int operation) {
            die_when_due();
            return system_file_calls().flock(file, operation);
          },
      .fsync =
          [](int file) {
            die_when_due();
            return system_file_calls().fsync(file);
          },
      .sync_file_range =
          [](int file, off64_t offset, off64_t bytes, unsigned flags) {
            die_when_due();
            return system_file_calls().sync_file_range(file, offset, bytes, flags);
          },
      .close =
          [](int file) {
            die_when_due();
            return system_file_calls().close(file);
          },
      .rename =
          [](const char* from, const char* to) {
            die_when_due();
            return system_file_calls().rename(from, to);
          },
      .unlink =
          [](const char* path) {
            die_when_due();
            return system_file_calls().unlink(path);
          },
      .mkdir =
          [](const char* folder, mode_t mode) {
            die_when_due();
            return system_file_calls().mkdir(folder, mode);
          },
      .chmod =
          [](const char* file, mode_t mode) {
            die_when_due();
            return system_file_calls().chmod(file, mode);
          },
      .stat =
          [](const char* file, FileStatus* status) {
            die_when_due();
            return system_file_calls().stat(file, status);
          },
      .getpid = system_file_calls().getpid,
      .kill = system_file_calls().kill,
      .getentropy = system_file_calls().getentropy,
  };
  const TemporaryFolder folder;
  const auto path = folder / "a.nw";
  const SavedNeighbors before = filled(1), after = filled(2);
  bool renamed = false;
  for (int call = 1;; ++call) {
    save(before, path);
    EXPECT_EQ(folder.names(), std::vector<std::string>{"a.nw"});
    const pid_t child = fork();
    if (child == 0) {
      calls_to_live = call;
      replace_file_calls(&deadly);
      save(after, path);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    const Id found = content(path);
    if (WIFEXITED(status)) {
      EXPECT_EQ(found, 2);
      EXPECT_GT(call, 8);
      break;
    }
    EXPECT_TRUE(found == 1 || found == 2);
    EXPECT_TRUE(found == 2 || !renamed) << "call " << call;  // once in place, it stays
    renamed = renamed || found == 2;
  }
  EXPECT_TRUE(renamed);
}

}  // namespace
}  // namespace nearwise
