// Faults on command: the i-th system call on files fails, all are short, or calls are interrupted.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <string>
#include <vector>

#include "io/files/file_calls.h"

namespace nearwise::testing_io {

// While it lives, counts the calls of io/files/file_calls.h and disturbs those it is told to. One at a time.
class FailingCalls {
 public:
  struct Plan {
    int fail_call = 0;            // 1: the first; 0: none
    bool fail_all_after = false;  // the calls after it too: the disk is gone
    int error = EIO;
    std::size_t longest_write = 0;  // and read; 0: any
    bool interrupt = false;         // every call that may be is first interrupted once
  };

  explicit FailingCalls(const Plan& plan) : plan_(plan) {
    current() = this;
    static const FileCalls calls = {
        .open =
            [](const char* path, int flags, mode_t mode) {
              return current()->disturbed("open", true) ? -1 : system_file_calls().open(path, flags, mode);
            },
        .open_to_read =
            [](const char* path, int flags) {
              return current()->disturbed("open", true) ? -1 : system_file_calls().open_to_read(path, flags);
            },
        .pread = [](int file, void* data, std::size_t bytes, off_t offset) -> ssize_t {
          return current()->disturbed("pread", true)
                     ? -1
                     : system_file_calls().pread(file, data, current()->cut(bytes), offset);
        },
        .mmap = [](int file, std::size_t bytes) -> void* {
          return current()->disturbed("mmap", false) ? MAP_FAILED : system_file_calls().mmap(file, bytes);
        },
        .write = [](int file, const void* data, std::size_t bytes) -> ssize_t {
          return current()->disturbed("write", true)
                     ? -1
                     : system_file_calls().write(file, data, current()->cut(bytes));
        },
        .pwrite = [](int file, const void* data, std::size_t bytes, off_t offset) -> ssize_t {
          return current()->disturbed("pwrite", true)
                     ? -1
                     : system_file_calls().pwrite(file, data, current()->cut(bytes), offset);
        },
        .fchmod =
            [](int file, mode_t mode) {
              return current()->disturbed("fchmod", true) ? -1 : system_file_calls().fchmod(file, mode);
            },
        .fchown =
            [](int file, uid_t owner, gid_t group) {
              return current()->disturbed("fchown", false) ? -1
                                                           : system_file_calls().fchown(file, owner, group);
            },
        .flock =
            [](int file, int operation) {
              return current()->disturbed("flock", false) ? -1 : system_file_calls().flock(file, operation);
            },
        .fsync =
            [](int file) {
              return current()->disturbed("fsync", true) ? -1 : system_file_calls().fsync(file);
            },
        .sync_file_range =
            [](int file, off64_t offset, off64_t bytes, unsigned flags) {
              return current()->disturbed("sync_file_range", true)
                         ? -1
                         : system_file_calls().sync_file_range(file, offset, bytes, flags);
            },
        .close =
            [](int file) {
              // As on Linux, the descriptor is gone even when close() reports an error.
              const bool fail = current()->disturbed("close", false);
              const int result = system_file_calls().close(file);
              if (fail) errno = current()->plan_.error;
              return fail ? -1 : result;
            },
        .rename =
            [](const char* from, const char* to) {
              return current()->disturbed("rename", false) ? -1 : system_file_calls().rename(from, to);
            },
        .unlink =
            [](const char* path) {
              return current()->disturbed("unlink", false) ? -1 : system_file_calls().unlink(path);
            },
        .mkdir =
            [](const char* path, mode_t mode) {
              return current()->disturbed("mkdir", false) ? -1 : system_file_calls().mkdir(path, mode);
            },
        .chmod =
            [](const char* path, mode_t mode) {
              return current()->disturbed("chmod", false) ? -1 : system_file_calls().chmod(path, mode);
            },
        .stat =
            [](const char* path, FileStatus* status) {
              return current()->disturbed("stat", false) ? -1 : system_file_calls().stat(path, status);
            },
        .getpid = system_file_calls().getpid,
        .kill = system_file_calls().kill,
        .getentropy = system_file_calls().getentropy,
    };
    replace_file_calls(&calls);
  }
  ~FailingCalls() { replace_file_calls(nullptr); }
  FailingCalls(const FailingCalls&) = delete;
  FailingCalls& operator=(const FailingCalls&) = delete;

  int calls() const { return calls_; }
  bool failed() const {
    const std::lock_guard lock(mutex_);
    return !failed_.empty();
  }
  // The names of all calls made, in order.
  const std::vector<std::string>& names() const { return names_; }
  // The call that failed first.
  const std::string& failed_call() const { return failed_; }

 private:
  static FailingCalls*& current() {
    static FailingCalls* instance = nullptr;
    return instance;
  }

  bool disturbed(const char* name, bool interruptible) {
    const std::lock_guard lock(mutex_);
    if (plan_.interrupt && interruptible) {
      interrupted_ = !interrupted_;
      if (interrupted_) {
        errno = EINTR;
        return true;
      }
    }
    ++calls_;
    names_.emplace_back(name);
    const bool fail = plan_.fail_call != 0 &&
                      (calls_ == plan_.fail_call || (plan_.fail_all_after && calls_ > plan_.fail_call));
    if (!fail) return false;
    if (failed_.empty()) failed_ = name;
    errno = plan_.error;
    return true;
  }

  std::size_t cut(std::size_t bytes) const {
    return plan_.longest_write == 0 ? bytes : std::min(bytes, plan_.longest_write);
  }

  const Plan plan_;
  mutable std::mutex mutex_;  // files are read on several threads
  int calls_ = 0;
  std::vector<std::string> names_;
  bool interrupted_ = false;
  std::string failed_;
};

}  // namespace nearwise::testing_io
