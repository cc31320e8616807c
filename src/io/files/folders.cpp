#include "io/files/folders.h"

#include <fcntl.h>

#include "io/files/file_calls.h"
#include "io/files/file_error.h"

namespace nearwise {
namespace {

namespace fs = std::filesystem;

dev_t file_system_of(const fs::path& folder) {
  FileStatus status{};
  if (file_calls().stat(folder.c_str(), &status) != 0) fail_file(ErrorCode::io, "sync", folder, errno);
  return status.st_dev;
}

}  // namespace

bool create_folder(const fs::path& folder, mode_t mode) {
  std::error_code error;
  if (fs::is_directory(folder, error)) return false;
  if (const fs::path above = folder.parent_path(); !above.empty() && above != folder) create_folder(above);
  if (file_calls().mkdir(folder.c_str(), mode) == 0) return true;
  const int failure = errno;
  // Another process may have made it in the meantime; and the folder above "a/" is "a".
  if (failure == EEXIST && fs::is_directory(folder, error)) return false;
  fail_file(ErrorCode::cannot_create, "create", folder, failure);
}

// A folder that may not be listed was not made by this process. Many file systems cannot sync a folder, and
// report it by various errors; a failing or full disk is an error.
void sync_folder(const fs::path& folder) {
  const FileCalls& calls = file_calls();
  const int file =
      retry_interrupted([&] { return calls.open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0); });
  if (file == -1 && (errno == EACCES || errno == EPERM)) return;
  if (file == -1) fail_file(ErrorCode::io, "sync", folder, errno);
  const int synced = retry_interrupted([&] { return calls.fsync(file); });
  const int error = errno;
  calls.close(file);
  if (synced == -1 && (error == EIO || error == ENOSPC || error == EDQUOT))
    fail_file(ErrorCode::io, "sync", folder, error);
}

void sync_entries_above(const fs::path& folder) {
  fs::path inner = fs::canonical(folder);
  while (inner.has_relative_path()) {
    const fs::path outer = inner.parent_path();
    if (file_system_of(outer) != file_system_of(inner)) return;  // the root of a file system has no entry
    sync_folder(outer);
    inner = outer;
  }
}

}  // namespace nearwise
