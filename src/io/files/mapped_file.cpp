#include "io/files/mapped_file.h"

#include <sys/mman.h>

#include "io/files/file_calls.h"
#include "io/files/file_error.h"
#include "io/files/input_file.h"

namespace nearwise {

MappedFile::MappedFile(const std::filesystem::path& path) {
  const InputFile file(path);
  if (file.size() == 0) return;  // mmap refuses an empty range
  range_ = MappedRange(path);
  void* data = file_calls().mmap(file.descriptor(), file.size());
  if (data == MAP_FAILED) {
    const int error = errno;
    fail_file(error == ENOMEM ? ErrorCode::out_of_memory : ErrorCode::io, "map", path, error);
  }
  bytes_ = {static_cast<const std::byte*>(data), file.size()};
  range_.set(data, bytes_.size());
}

MappedFile::~MappedFile() {
  range_ = {};
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace nearwise
