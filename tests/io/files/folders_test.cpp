// Folders: made with those above them, with their permissions from the start, and durable.
#include "io/files/folders.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "io/expect_error.h"
#include "io/failing_calls.h"
#include "io/temporary_folder.h"

namespace nearwise {
namespace {

using testing_io::FailingCalls;
using testing_io::TemporaryFolder;
namespace fs = std::filesystem;

TEST(Folders, AreMadeWithThoseAbove) {
  const TemporaryFolder folder;
  EXPECT_TRUE(create_folder(folder / "a/b/c", 0700));
  EXPECT_EQ(fs::status(folder / "a/b/c").permissions(), fs::perms::owner_all);
  EXPECT_NE(fs::status(folder / "a/b").permissions(), fs::perms::owner_all);
  EXPECT_FALSE(create_folder(folder / "a/b/c"));
  EXPECT_EQ(fs::status(folder / "a/b/c").permissions(), fs::perms::owner_all);
  create_folder(folder / "d/");
  EXPECT_TRUE(fs::is_directory(folder / "d"));
  testing_io::write_all(folder / "file", std::string("x"));
  EXPECT_ERROR(create_folder(folder / "file"), cannot_create, "File exists");
  EXPECT_ERROR(create_folder(folder / "file/a"), cannot_create, "file");
}

TEST(Folders, EveryFolderAboveIsSynced) {
  const TemporaryFolder folder;
  create_folder(folder / "a/b/c");
  const auto syncs = [](const fs::path& path) {
    const FailingCalls calls({});
    sync_entries_above(path);
    return std::ranges::count(calls.names(), "fsync");
  };
  EXPECT_GE(syncs(folder / "a"), 1);
  EXPECT_EQ(syncs(folder / "a/b/c"), syncs(folder / "a") + 2);
  const FailingCalls faults({.fail_call = 4, .error = EIO});  // stat, stat, open, fsync
  EXPECT_ERROR(sync_entries_above(folder / "a"), io, "sync");
  EXPECT_EQ(faults.failed_call(), "fsync");
}

// A folder that cannot be synced was not made by this process, or is in a file system without such a call.
TEST(Folders, OfOtherFileSystemsNeedNotBeSynced) {
  const TemporaryFolder folder;
  create_folder(folder / "a");
  const FailingCalls faults({.fail_call = 4, .error = EINVAL});
  sync_entries_above(folder / "a");
  EXPECT_EQ(faults.failed_call(), "fsync");
}

}  // namespace
}  // namespace nearwise
