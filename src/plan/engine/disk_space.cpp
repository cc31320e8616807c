#include "plan/engine/disk_space.h"

#include <sys/stat.h>

#include <cerrno>
#include <map>

#include "core/check.h"
#include "io/files/file_error.h"

namespace nearwise::plan {
namespace {

namespace fs = std::filesystem;

// The folder itself, or its nearest ancestor that exists.
fs::path existing_folder(fs::path folder) {
  folder = fs::absolute(folder);
  while (!fs::exists(folder) && folder.has_relative_path()) folder = folder.parent_path();
  return folder;
}

}  // namespace

DiskQueries system_disk_queries() {
  return {
      .file_system =
          [](const fs::path& folder) {
            struct stat status = {};
            if (stat(folder.c_str(), &status) != 0) fail_file(ErrorCode::io, "stat", folder, errno);
            return static_cast<std::uint64_t>(status.st_dev);
          },
      .available_bytes = [](const fs::path& folder) { return std::uint64_t{fs::space(folder).available}; }};
}

void check_disk(const std::vector<DiskNeed>& needs, const DiskQueries& queries) {
  std::map<std::uint64_t, DiskNeed> sums;  // by file system, under the first folder
  for (const DiskNeed& need : needs) {
    const fs::path folder = existing_folder(need.folder);
    DiskNeed& sum = sums[queries.file_system(folder)];
    if (sum.folder.empty()) sum.folder = folder;
    sum.bytes += need.bytes;
  }
  for (const auto& [file_system, need] : sums) {
    const std::uint64_t available = queries.available_bytes(need.folder);
    if (need.bytes > available)
      fail(ErrorCode::cannot_create, "plan: {} bytes are needed on the disk of {}, {} are free", need.bytes,
           need.folder.native(), available);
  }
}

}  // namespace nearwise::plan
