#include "plan/engine/disk_space.h"

#include <gtest/gtest.h>

#include <vector>

#include "io/expect_error.h"
#include "io/temporary_folder.h"

namespace nearwise::plan {
namespace {

using testing_io::TemporaryFolder;

class DiskSpace : public ::testing::Test {
 protected:
  DiskSpace() {
    std::filesystem::create_directory(folder_ / "work");
    std::filesystem::create_directory(folder_ / "out");
  }

  // Both folders on one file system, or each on its own; 100 bytes are free on every one.
  DiskQueries queries(bool is_shared) const {
    return {.file_system = [is_shared](const std::filesystem::path& folder) -> std::uint64_t {
              return is_shared || folder.filename() == "work" ? 1 : 2;
            },
            .available_bytes = [](const std::filesystem::path&) -> std::uint64_t { return 100; }};
  }
  std::vector<DiskNeed> needs(std::uint64_t work, std::uint64_t out) const {
    return {{folder_ / "work", work}, {folder_ / "out", out}};
  }

  const TemporaryFolder folder_;
};

// Would catch: each folder checked on its own.
TEST_F(DiskSpace, NeedsOnOneFileSystemAreSummed) {
  EXPECT_NO_THROW(check_disk(needs(60, 40), queries(true)));
  EXPECT_ERROR(check_disk(needs(60, 41), queries(true)), cannot_create, "101 bytes are needed");
}

TEST_F(DiskSpace, FileSystemsAreCheckedOnTheirOwn) {
  EXPECT_NO_THROW(check_disk(needs(100, 100), queries(false)));
  EXPECT_ERROR(check_disk(needs(101, 1), queries(false)), cannot_create, "101 bytes are needed");
  EXPECT_ERROR(check_disk(needs(1, 101), queries(false)), cannot_create, "101 bytes are needed");
}

TEST_F(DiskSpace, FoldersThatDoNotExistYetAreOnTheDiskOfTheirParent) {
  EXPECT_NO_THROW(check_disk({{folder_ / "a/b/c", 1}}));
  EXPECT_ERROR(check_disk({{folder_ / "a/b/c", ~std::uint64_t{0}}}), cannot_create, "are needed");
}

// Two halves of what is free fit on their own, but not with one byte more.
TEST_F(DiskSpace, TheSystemKnowsWhichFoldersShareADisk) {
  DiskQueries system = system_disk_queries();
  system.available_bytes = [](const std::filesystem::path&) -> std::uint64_t { return 100; };
  EXPECT_NO_THROW(check_disk(needs(50, 50), system));
  EXPECT_ERROR(check_disk(needs(50, 51), system), cannot_create, "101 bytes are needed");
}

}  // namespace
}  // namespace nearwise::plan
