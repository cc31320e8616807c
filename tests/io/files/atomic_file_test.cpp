// AtomicFile: complete old or complete new content, whatever fails.
#include "io/files/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "io/expect_error.h"
#include "io/failing_calls.h"
#include "io/files/new_files.h"
#include "io/temporary_folder.h"

namespace nearwise {
namespace {

using testing_io::FailingCalls;
using testing_io::read_all;
using testing_io::TemporaryFolder;
using testing_io::write_all;
namespace fs = std::filesystem;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string text_of(const fs::path& path) {
  const auto bytes = read_all(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void replace(const fs::path& path, const std::string& content) {
  AtomicFile file(path);
  file.write(bytes_of(content));
  file.commit();
}

// The number of a process that existed and does not any more.
pid_t dead_process() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return child;
}

TEST(AtomicFile, AppearsOnlyWhenCommitted) {
  const TemporaryFolder folder;
  {
    AtomicFile file(folder / "a");
    file.write(bytes_of("content"));
    EXPECT_FALSE(fs::exists(folder / "a"));
    EXPECT_EQ(folder.names().size(), 1U);  // the temporary
    EXPECT_TRUE(folder.names().front().starts_with(".a." + std::to_string(getpid()) + "."));
    EXPECT_TRUE(folder.names().front().ends_with(".tmp"));
  }
  EXPECT_TRUE(folder.names().empty());
  replace(folder / "a", "content");
  EXPECT_EQ(text_of(folder / "a"), "content");
  EXPECT_EQ(folder.names().size(), 1U);
}

TEST(AtomicFile, BuffersKeepOrder) {
  const TemporaryFolder folder;
  std::string expected;
  AtomicFile file(folder / "a");
  for (std::size_t i = 0; i < 40; ++i) {
    // Small pieces, pieces around the size of the buffer, and larger ones.
    const std::string piece(i % 5 == 4 ? 300'000 + i : i * 1000 + 1, static_cast<char>('a' + i % 26));
    file.write(bytes_of(piece));
    expected += piece;
  }
  file.write_zeros(5000);
  expected.append(5000, '\0');
  file.overwrite(3, bytes_of("HEAD"));
  expected.replace(3, 4, "HEAD");
  EXPECT_EQ(file.size(), expected.size());
  file.commit();
  EXPECT_EQ(text_of(folder / "a"), expected);
}

TEST(AtomicFile, EmptyFile) {
  const TemporaryFolder folder;
  replace(folder / "a", "");
  EXPECT_EQ(fs::file_size(folder / "a"), 0U);
}

TEST(AtomicFile, RefusesWhatCannotBeCreated) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "sub");
  EXPECT_ERROR(AtomicFile(folder / "missing/a"), cannot_create, "missing/a: No such file");
  EXPECT_ERROR(AtomicFile(folder / "sub"), cannot_create, "directory");
  EXPECT_ERROR(AtomicFile(folder / "sub/"), cannot_create, "directory");
  write_all(folder / "plain", std::string("x"));
  EXPECT_ERROR(AtomicFile(folder / "plain/a"), cannot_create, "Not a directory");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_ERROR(AtomicFile(folder / "pipe"), cannot_create, "regular file");
  fs::create_symlink("loop", folder / "loop");
  EXPECT_ERROR(AtomicFile(folder / "loop"), cannot_create, "");
  EXPECT_ERROR(AtomicFile(folder / std::string(300, 'n')), cannot_create, "too long");
}

TEST(AtomicFile, TakesTheLongestNames) {
  const TemporaryFolder folder;
  const std::string name(255, 'n');
  replace(folder / name, "content");
  EXPECT_EQ(text_of(folder / name), "content");
}

TEST(AtomicFile, NothingFollowsACommitOrAFailure) {
  const TemporaryFolder folder;
  AtomicFile done(folder / "a");
  done.commit();
  EXPECT_ERROR(done.write(bytes_of("more")), invalid_argument, "complete");
  EXPECT_ERROR(done.commit(), invalid_argument, "complete");

  AtomicFile failed(folder / "b");
  failed.write(bytes_of("content"));
  {
    const FailingCalls faults({.fail_call = 1, .error = ENOSPC});
    EXPECT_ERROR(failed.commit(), io, "b: No space left on device");
  }
  EXPECT_ERROR(failed.write(bytes_of("more")), io, "discarded");
  EXPECT_ERROR(failed.commit(), io, "discarded");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a"});
}

TEST(AtomicFile, KeepsPermissionsAndLinks) {
  const TemporaryFolder folder;
  replace(folder / "a", "old");
  fs::permissions(folder / "a", fs::perms(0640));
  replace(folder / "a", "new");
  EXPECT_EQ(fs::status(folder / "a").permissions(), fs::perms(0640));

  fs::create_directory(folder / "sub");
  fs::create_symlink("../a", folder / "sub/link");
  replace(folder / "sub/link", "through");
  EXPECT_TRUE(fs::is_symlink(folder / "sub/link"));
  EXPECT_EQ(text_of(folder / "a"), "through");

  fs::create_symlink("later", folder / "dangling");
  replace(folder / "dangling", "made");
  EXPECT_TRUE(fs::is_symlink(folder / "dangling"));
  EXPECT_EQ(text_of(folder / "later"), "made");
}

TEST(AtomicFile, AScopeLimitsThePermissions) {
  const TemporaryFolder folder;
  const auto mode = [&](const std::string& name) { return fs::status(folder / name).permissions(); };
  replace(folder / "a", "old");
  replace(folder / "b", "old");
  fs::permissions(folder / "a", fs::perms(0644));
  {
    const NewFilesScope none(0);
    const NewFilesScope closed(0700);
    replace(folder / "a", "new");
    replace(folder / "made", "new");
    const AtomicFile temporary(folder / "b");
    for (const std::string& name : folder.names()) {
      if (name.ends_with(".tmp")) {
        EXPECT_EQ(mode(name), fs::perms(0600));
      }
    }
  }
  EXPECT_EQ(mode("a"), fs::perms(0600));
  EXPECT_EQ(mode("made"), fs::perms(0600));
  replace(folder / "after", "new");
  EXPECT_EQ(mode("after"), mode("b"));
}

TEST(AtomicFile, KeepsOwnerAndGroupWherePermitted) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  const TemporaryFolder folder;
  fs::permissions(folder / ".", fs::perms::all);
  replace(folder / "a", "old");
  fs::permissions(folder / "a", fs::perms(0640));
  ASSERT_EQ(chown((folder / "a").c_str(), 12345, 23456), 0);
  const auto status = [&] {
    struct stat found {};
    EXPECT_EQ(stat((folder / "a").c_str(), &found), 0);
    return found;
  };
  replace(folder / "a", "by root");
  EXPECT_EQ(status().st_uid, 12345U);
  EXPECT_EQ(status().st_gid, 23456U);
  EXPECT_EQ(status().st_mode & 0777, 0640U);
  // Another user, who is not in the group: his own group must not read what it could not read before.
  ASSERT_EQ(seteuid(54321), 0);
  replace(folder / "a", "by another");
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_EQ(text_of(folder / "a"), "by another");
  EXPECT_EQ(status().st_uid, 54321U);
  EXPECT_EQ(status().st_mode & 0777, 0600U);
}

TEST(AtomicFile, SweepsTemporariesOfTheDeadOnly) {
  const TemporaryFolder folder;
  const std::string dead = std::to_string(dead_process());
  const std::string alive = std::to_string(getppid());
  const std::string random = ".0123456789abcdef.tmp";
  const std::vector<std::string> kept = {
      ".other." + dead + random,               // another target
      ".a." + alive + random,                  // a living process
      ".a." + dead + ".0123456789abcdeg.tmp",  // not a name of ours
      ".a." + dead + ".tmp",
      ".a..tmp",
      ".a.tmp",                 // likewise
      ".a.b." + dead + random,  // a temporary of "a.b"
      ".a.99999999999999999999" + random,
      "a." + dead + random,
  };
  for (const std::string& name : kept) write_all(folder / name, std::string("x"));
  write_all(folder / (".a." + dead + random), std::string("stale"));
  // Locked: its writer may live in another container, where the number means somebody else.
  const std::string locked = ".a." + dead + ".00000000000000ff.tmp";
  write_all(folder / locked, std::string("x"));
  const int lock = open((folder / locked).c_str(), O_RDONLY);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);

  replace(folder / "a", "content");
  std::vector<std::string> expected = kept;
  expected.insert(expected.end(), {locked, "a"});
  std::vector<std::string> found = folder.names();
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, expected);

  close(lock);
  replace(folder / "a", "content");
  EXPECT_FALSE(fs::exists(folder / locked));
}

TEST(AtomicFile, TemporariesOfAFolderAreSweptWhateverTheirTarget) {
  const TemporaryFolder folder;
  const std::string dead = std::to_string(dead_process());
  const std::string random = ".0123456789abcdef.tmp";
  const std::vector<std::string> kept = {
      ".a." + std::to_string(getppid()) + random,
      ".a." + dead + ".0123456789abcdeg.tmp",
      ".a.x" + dead + random,
      "." + dead + random,
      "a." + dead + random,
      "a",
      random,
  };
  for (const std::string& name : kept) write_all(folder / name, std::string("x"));
  for (const std::string& name : {".a." + dead + random, ".a.b.nw." + dead + random, ".1.2." + dead + random})
    write_all(folder / name, std::string("stale"));
  sweep_folder(folder.path());
  std::vector<std::string> expected = kept;
  std::vector<std::string> found = folder.names();
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, expected);
  sweep_folder(folder / "none");
}

TEST(AtomicFile, ShortWritesAndInterruptions) {
  const TemporaryFolder folder;
  std::string content(700'000, 'x');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 31 % 251);
  const FailingCalls faults({.longest_write = 1009, .interrupt = true});
  AtomicFile file(folder / "a");
  file.write(bytes_of(content.substr(0, 100)));
  file.write(bytes_of(content.substr(100)));
  file.overwrite(0, bytes_of(content.substr(0, 5000)));
  file.commit();
  EXPECT_EQ(text_of(folder / "a"), content);
}

// SQLite's loop: fail the first call, then the second, ... until the operation gets through undisturbed.
void fail_every_call(bool replacing, bool fail_all_after, int error) {
  const TemporaryFolder folder;
  const std::string old_content(1000, 'o');
  const std::string new_content(600'000, 'n');
  for (int call = 1;; ++call) {
    fs::remove_all(folder / "a");
    if (replacing) write_all(folder / "a", old_content);
    FailingCalls faults({.fail_call = call, .fail_all_after = fail_all_after, .error = error});
    bool thrown = false;
    try {
      AtomicFile file(folder / "a");
      file.write(bytes_of(new_content.substr(0, 1000)));
      file.write(bytes_of(new_content.substr(1000)));
      file.overwrite(0, bytes_of(new_content.substr(0, 500)));
      file.commit();
    } catch (const Error& failure) {
      thrown = true;
      EXPECT_TRUE(failure.code() == ErrorCode::io || failure.code() == ErrorCode::cannot_create);
      EXPECT_NE(std::string(failure.what()).find("/a: "), std::string::npos) << failure.what();
    }
    if (!faults.failed()) {
      EXPECT_FALSE(thrown);
      EXPECT_EQ(text_of(folder / "a"), new_content);
      EXPECT_GE(call, 10);  // the loop did visit the calls
      return;
    }
    const std::string found = fs::exists(folder / "a") ? text_of(folder / "a") : "";
    const std::string before = replacing ? old_content : "";
    EXPECT_TRUE(found == before || found == new_content) << "call " << call << " " << faults.failed_call();
    EXPECT_TRUE(thrown || found == new_content)
        << "success reported, call " << call << " " << faults.failed_call();
    if (!fail_all_after && faults.failed_call() != "unlink") {
      for (const std::string& name : folder.names()) EXPECT_EQ(name, "a") << "call " << call;
    }
    for (const std::string& name : folder.names()) fs::remove(folder / name);
  }
}

TEST(AtomicFile, EveryCallFailsOnceReplacing) { fail_every_call(true, false, EIO); }
TEST(AtomicFile, EveryCallFailsOnceCreating) { fail_every_call(false, false, ENOSPC); }
TEST(AtomicFile, TheDiskGoesAwayAtEveryCall) {
  fail_every_call(true, true, EIO);
  fail_every_call(false, true, ENOSPC);
}

// Synced before it gets its name, and the folder after: rename alone is atomic, not durable.
TEST(AtomicFile, SyncsInTheRightOrder) {
  const TemporaryFolder folder;
  replace(folder / "a", "old");
  std::vector<std::string> names;
  {
    const FailingCalls calls({});
    replace(folder / "a", "new");
    names = calls.names();
  }
  const std::vector<std::string> expected = {"open",   "open",  "flock", "write",  "sync_file_range",
                                             "fchmod", "fsync", "close", "rename", "fsync",
                                             "close"};
  EXPECT_EQ(names, expected);
  // Of these only the lock and the close of the folder may fail unnoticed.
  for (std::size_t call = 0; call < names.size(); ++call) {
    const FailingCalls faults({.fail_call = static_cast<int>(call) + 1});
    if (call == 2 || call == 10) {
      EXPECT_NO_THROW(replace(folder / "a", "new"));
    } else {
      EXPECT_THROW(replace(folder / "a", "new"), Error) << names[call];
    }
  }
}

TEST(AtomicFile, FolderThatCannotBeSyncedIsNoFailure) {
  const TemporaryFolder folder;
  replace(folder / "a", "old");
  int calls = 0;
  {
    FailingCalls count({});
    replace(folder / "a", "content");
    calls = count.calls();
  }
  // The last two calls are the sync and the close of the folder.
  {
    FailingCalls faults({.fail_call = calls - 1, .error = EINVAL});
    replace(folder / "a", "content");
    EXPECT_EQ(faults.failed_call(), "fsync");
  }
  FailingCalls faults({.fail_call = calls, .error = EIO});
  replace(folder / "a", "content");
  EXPECT_EQ(faults.failed_call(), "close");
}

}  // namespace
}  // namespace nearwise
