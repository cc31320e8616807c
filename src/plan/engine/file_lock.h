// A lock that other processes see, and that goes with the process that holds it, however it ends.
#pragma once

#include <filesystem>

namespace nearwise::plan {

class FileLock {
 public:
  enum class Mode {
    wait,       // alone, after others
    exclusive,  // alone, or not at all
    shared,     // beside others who share, or not at all
  };

  // Makes the file where there is none; it stays. Throws Error(cannot_create) where somebody else holds the lock.
  FileLock(const std::filesystem::path& path, Mode mode);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int file_ = -1;
};

}  // namespace nearwise::plan
