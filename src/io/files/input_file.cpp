#include "io/files/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "io/files/file_calls.h"
#include "io/files/file_error.h"

namespace nearwise {

static_assert(sizeof(std::size_t) == 8 && sizeof(off_t) == 8, "files are larger than 4 GiB");

InputFile::InputFile(const std::filesystem::path& path) : path_(path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer. It means nothing for regular files.
  descriptor_ = retry_interrupted(
      [&] { return file_calls().open_to_read(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); });
  if (descriptor_ == -1) {
    const int error = errno;
    fail_file(error == ENOENT || error == ENOTDIR ? ErrorCode::not_found : ErrorCode::io, "open", path,
              error);
  }
  struct stat status {};
  const bool known = fstat(descriptor_, &status) == 0;
  const int error = errno;
  if (!known || !S_ISREG(status.st_mode)) {
    ::close(std::exchange(descriptor_, -1));
    if (!known) fail_file(ErrorCode::io, "open", path, error);
    fail(ErrorCode::invalid_argument, "open {}: expected a regular file, found a {}", path.native(),
         S_ISDIR(status.st_mode) ? "folder" : "device or pipe");
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::~InputFile() {
  if (descriptor_ != -1) ::close(descriptor_);
}

void InputFile::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = retry_interrupted([&] {
      return file_calls().pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    });
    if (got == -1) fail_file(ErrorCode::io, "read", path_, errno);
    if (got == 0)
      fail(ErrorCode::io, "read {}: expected {} bytes more at offset {}, the file has become shorter",
           path_.native(), bytes.size(), offset);
    offset += static_cast<std::uint64_t>(got);
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace nearwise
