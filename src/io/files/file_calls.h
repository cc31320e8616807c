// Every system call that reading or writing a file makes, in one table.
//
// The seam for tests: they replace the table by one that fails, reads or writes less than asked or is
// interrupted at a chosen call, or by a simulated disk. Each entry behaves as the POSIX function of its name;
// mmap maps a whole file for reading.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>

namespace nearwise {

using FileStatus = struct stat;

struct FileCalls {
  int (*open)(const char* path, int flags, mode_t mode) = nullptr;
  int (*open_to_read)(const char* path, int flags) = nullptr;  // as open(); closed by the system's close()
  ssize_t (*pread)(int file, void* data, std::size_t bytes, off_t offset) = nullptr;
  void* (*mmap)(int file, std::size_t bytes) = nullptr;
  ssize_t (*write)(int file, const void* data, std::size_t bytes) = nullptr;
  ssize_t (*pwrite)(int file, const void* data, std::size_t bytes, off_t offset) = nullptr;
  int (*fchmod)(int file, mode_t mode) = nullptr;
  int (*fchown)(int file, uid_t owner, gid_t group) = nullptr;
  int (*flock)(int file, int operation) = nullptr;
  int (*fsync)(int file) = nullptr;
  int (*sync_file_range)(int file, off64_t offset, off64_t bytes, unsigned flags) = nullptr;
  int (*close)(int file) = nullptr;
  int (*rename)(const char* from, const char* to) = nullptr;
  int (*unlink)(const char* path) = nullptr;
  int (*mkdir)(const char* path, mode_t mode) = nullptr;
  int (*chmod)(const char* path, mode_t mode) = nullptr;
  int (*stat)(const char* path, FileStatus* status) = nullptr;
  // Names of temporaries carry the process, by which others tell whether the writer is alive.
  pid_t (*getpid)() = nullptr;
  int (*kill)(pid_t process, int signal) = nullptr;
  int (*getentropy)(void* data, std::size_t bytes) = nullptr;
};

// The table in use.
const FileCalls& file_calls();

// The system's own functions.
const FileCalls& system_file_calls();

// For tests. The table must outlive its use; nullptr restores the system's.
void replace_file_calls(const FileCalls* calls);

}  // namespace nearwise
