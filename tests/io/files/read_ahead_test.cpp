// What is asked for is read before it is touched.
#include "io/files/read_ahead.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "io/files/input_file.h"
#include "io/files/mapped_file.h"
#include "io/temporary_folder.h"

namespace nearwise {
namespace {

std::size_t resident_pages(const MappedFile& file) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> in_memory((file.bytes().size() + page - 1) / page);
  EXPECT_EQ(mincore(const_cast<std::byte*>(file.bytes().data()), file.bytes().size(), in_memory.data()), 0);
  return static_cast<std::size_t>(
      std::ranges::count_if(in_memory, [](unsigned char state) { return (state & 1) != 0; }));
}

TEST(ReadAhead, ReadsWhatIsAskedFor) {
  const testing_io::TemporaryFolder folder;
  constexpr std::size_t bytes = std::size_t{8} << 20;
  testing_io::write_all(folder / "file", std::string(bytes, 'x'));
  {
    const InputFile file(folder / "file");
    ASSERT_EQ(fsync(file.descriptor()), 0);
    ASSERT_EQ(posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED), 0);
  }
  const MappedFile file(folder / "file");
  const std::size_t pages = bytes / static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (resident_pages(file) > pages / 8) GTEST_SKIP() << "files of this folder are always in memory";
  std::stop_source stopped;
  stopped.request_stop();
  ask_for(file.bytes().data(), bytes, stopped.get_token());
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(resident_pages(file), pages / 8);
  // From within a page to within another, in the second half.
  ask_for(file.bytes().data() + bytes / 2 + 100, bytes / 2 - 200);
  for (int i = 0; i < 500 && resident_pages(file) < pages / 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_GE(resident_pages(file), pages / 2);
  EXPECT_LT(resident_pages(file), pages * 3 / 4);
  EXPECT_EQ(file.bytes()[bytes - 1], std::byte{'x'});
}

}  // namespace
}  // namespace nearwise
