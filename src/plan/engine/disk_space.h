// Whether the file systems have room for what a plan will write.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

namespace nearwise::plan {

struct DiskNeed {
  std::filesystem::path folder;  // may not exist yet
  std::uint64_t bytes = 0;
};

// Queries of the system about an existing folder; tests replace them.
struct DiskQueries {
  std::function<std::uint64_t(const std::filesystem::path&)> file_system;  // its number (st_dev)
  std::function<std::uint64_t(const std::filesystem::path&)> available_bytes;
};
DiskQueries system_disk_queries();

// Throws Error(cannot_create) if a file system lacks room for the sum of its needs.
void check_disk(const std::vector<DiskNeed>& needs, const DiskQueries& queries = system_disk_queries());

}  // namespace nearwise::plan
