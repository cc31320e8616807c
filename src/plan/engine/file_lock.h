// A lock between processes, released when its holder ends for any reason.
#pragma once

#include <filesystem>

namespace nearwise::plan {

class FileLock {
 public:
  enum class Mode {
    wait,         // exclusive; waits for other holders
    wait_shared,  // waits for an exclusive holder
    exclusive,    // fails if there is any other holder
    shared,       // fails if there is an exclusive holder
  };

  // Creates the file if missing, within the NewFilesScope, and leaves it. Throws Error(cannot_create) if
  // another process holds the lock.
  FileLock(const std::filesystem::path& path, Mode mode);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // Creates the file without a lock. Throws Error(cannot_create).
  static void create(const std::filesystem::path& path);

 private:
  int file_ = -1;
};

}  // namespace nearwise::plan
