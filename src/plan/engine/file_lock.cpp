#include "plan/engine/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include "io/files/file_calls.h"
#include "io/files/file_error.h"

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

}  // namespace

FileLock::FileLock(const std::filesystem::path& path, Mode mode) {
  const FileCalls& calls = file_calls();
  file_ = retry_interrupted([&] { return calls.open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666); });
  if (file_ == -1) fail_file(ErrorCode::cannot_create, "lock", path, errno);
  if (retry_interrupted([&] { return calls.flock(file_, operation_of(mode)); }) == 0) return;
  const int error = errno;
  calls.close(file_);
  if (error == EWOULDBLOCK)
    fail(ErrorCode::cannot_create, "lock {}: somebody else is at work there", path.native());
  fail_file(ErrorCode::cannot_create, "lock", path, error);
}

FileLock::~FileLock() { file_calls().close(file_); }

}  // namespace nearwise::plan
