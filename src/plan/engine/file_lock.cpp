#include "plan/engine/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include "io/files/file_calls.h"
#include "io/files/file_error.h"
#include "io/files/new_files.h"

namespace nearwise::plan {
namespace {

int operation_of(FileLock::Mode mode) {
  switch (mode) {
    case FileLock::Mode::wait: return LOCK_EX;
    case FileLock::Mode::wait_shared: return LOCK_SH;
    case FileLock::Mode::exclusive: return LOCK_EX | LOCK_NB;
    case FileLock::Mode::shared: break;
  }
  return LOCK_SH | LOCK_NB;
}

int open_or_create(const std::filesystem::path& path) {
  const mode_t mode = permitted_mode(0666);
  const int file =
      retry_interrupted([&] { return file_calls().open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, mode); });
  if (file == -1) fail_file(ErrorCode::cannot_create, "lock", path, errno);
  return file;
}

}  // namespace

FileLock::FileLock(const std::filesystem::path& path, Mode mode) : file_(open_or_create(path)) {
  const FileCalls& calls = file_calls();
  if (retry_interrupted([&] { return calls.flock(file_, operation_of(mode)); }) == 0) return;
  const int error = errno;
  calls.close(file_);
  if (error == EWOULDBLOCK)
    fail(ErrorCode::cannot_create, "lock {}: somebody else is at work there", path.native());
  fail_file(ErrorCode::cannot_create, "lock", path, error);
}

FileLock::~FileLock() { file_calls().close(file_); }

void FileLock::create(const std::filesystem::path& path) { file_calls().close(open_or_create(path)); }

}  // namespace nearwise::plan
