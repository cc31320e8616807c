// Beyond 4 GiB: offsets keep their upper bits. The files are sparse: almost nothing is on the disk.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "io/container/container_reader.h"
#include "io/expect_error.h"
#include "io/files/little_endian.h"
#include "io/temporary_folder.h"
#include "io/vectors/vector_layout.h"
#include "nearwise/vector_file.h"

namespace nearwise {
namespace {

using testing_io::TemporaryFolder;

// A file of holes with a few pieces of content. False: the file system has no room for its length.
class SparseFile {
 public:
  SparseFile(const std::filesystem::path& path, std::uint64_t bytes)
      : file_(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)),
        made_(file_ != -1 && ftruncate(file_, static_cast<off_t>(bytes)) == 0) {}
  ~SparseFile() {
    if (file_ != -1) close(file_);
  }
  SparseFile(const SparseFile&) = delete;
  SparseFile& operator=(const SparseFile&) = delete;

  bool made() const { return made_; }
  template <typename T>
  void put(std::uint64_t offset, const T& data, std::size_t bytes) {
    ASSERT_EQ(pwrite(file_, std::data(data), bytes, static_cast<off_t>(offset)), static_cast<ssize_t>(bytes));
  }

 private:
  int file_;
  bool made_;
};

TEST(LargeFile, LastRowOfVectorsBeyond4GiB) {
  const TemporaryFolder folder;
  constexpr std::uint64_t rows = (std::uint64_t{1} << 25) + 3;
  constexpr std::uint64_t dim = 128;
  constexpr std::uint64_t bytes = 8 + rows * dim;
  static_assert(bytes > std::uint64_t{1} << 32);
  SparseFile file(folder / "a.u8bin", bytes);
  if (!file.made()) GTEST_SKIP() << "no sparse files here";
  const std::uint32_t header[] = {static_cast<std::uint32_t>(rows), dim};
  file.put(0, header, sizeof(header));
  const std::string last(dim, 'z');
  file.put(bytes - dim, last, dim);

  const VectorFile vectors = VectorFile::open(folder / "a.u8bin");
  ASSERT_EQ(vectors.rows().rows(), rows);
  EXPECT_EQ(std::memcmp(vectors.rows().row(rows - 1), last.data(), dim), 0);
  EXPECT_EQ(std::to_integer<int>(*vectors.rows().row(rows - 2)), 0);
}

TEST(LargeFile, RowsOfOneByteBeyond2To31) {
  const TemporaryFolder folder;
  constexpr std::uint64_t rows = (std::uint64_t{1} << 31) + 1000;
  SparseFile file(folder / "a.i8bin", 8 + rows);
  if (!file.made()) GTEST_SKIP() << "no sparse files here";
  const std::uint32_t header[] = {static_cast<std::uint32_t>(rows), 1};
  file.put(0, header, sizeof(header));
  file.put(8 + rows - 1, std::string("\x55"), 1);
  EXPECT_EQ(std::to_integer<int>(*VectorFile::open(folder / "a.i8bin").rows().row(rows - 1)), 0x55);
}

TEST(LargeFile, ManyRowsOfVecsAreSampled) {
  const TemporaryFolder folder;
  constexpr std::uint64_t rows = rows_checked_in_full + 5;
  std::vector<std::byte> content(rows * 5);
  for (std::uint64_t row = 0; row < rows; ++row) content[row * 5] = std::byte{1};
  testing_io::write_all(folder / "a.bvecs", content);
  EXPECT_EQ(VectorFile::open(folder / "a.bvecs").rows().rows(), rows);
  content[(rows - 1) * 5] = std::byte{2};
  testing_io::write_all(folder / "a.bvecs", content);
  EXPECT_ERROR(VectorFile::open(folder / "a.bvecs"), corrupt, "row 1000004");
  content[(rows - 1) * 5] = std::byte{1};
  content[12345 * 5] = std::byte{2};  // not in the sample
  testing_io::write_all(folder / "a.bvecs", content);
  VectorFile::open(folder / "a.bvecs");
  EXPECT_ERROR(
      {
        VectorReader reader(folder / "a.bvecs", 1 << 16);
        while (reader.next().rows() != 0) {
        }
      },
      corrupt, "row 12345");
}

TEST(LargeFile, LastBlockOfASectionBeyond4GiB) {
  const TemporaryFolder folder;
  constexpr std::uint64_t bytes = (std::uint64_t{1} << 32) + 3 * container::block_bytes + 100;
  container::Section section;
  section.name = "large";
  section.offset = container::alignment;
  section.rows = bytes;
  section.element = container::Element::u8;

  // All blocks are holes but the last one.
  const std::vector<std::byte> zeros(container::block_bytes);
  std::vector<std::byte> tail(100, std::byte{7});
  std::vector<std::uint64_t> checksums(bytes / container::block_bytes, container::checksum(zeros));
  checksums.push_back(container::checksum(tail));
  std::vector<std::byte> table(container::entry_bytes + checksums.size() * 8);
  const auto entry = container::encode(section);
  std::copy(entry.begin(), entry.end(), table.begin());
  std::memcpy(table.data() + container::entry_bytes, checksums.data(), checksums.size() * 8);

  container::Header header;
  header.kind = "sample";
  header.section_count = 1;
  header.table_offset = (container::alignment + bytes + 4095) / 4096 * 4096;
  header.table_bytes = table.size();
  header.table_checksum = container::checksum(table);
  header.file_bytes = header.table_offset + table.size();
  SparseFile file(folder / "a.nw", header.file_bytes);
  if (!file.made()) GTEST_SKIP() << "no sparse files here";
  file.put(0, container::encode(header), container::header_bytes);
  file.put(container::alignment + bytes - 100, tail, 100);
  file.put(header.table_offset, table, table.size());

  const ContainerReader reader = ContainerReader::open(folder / "a.nw");
  const SectionView view = reader.section("large");
  EXPECT_EQ(view.info().blocks, checksums.size());
  EXPECT_EQ(view.rows<std::uint8_t>(bytes - 100, 100)(99, 0), 7);
  EXPECT_EQ(reader.verified_blocks(), 1U);
  tail[99] = std::byte{8};
  file.put(container::alignment + bytes - 100, tail, 100);
  EXPECT_ERROR(ContainerReader::open(folder / "a.nw").section("large").bytes(bytes - 1, 1), corrupt,
               "block 4099");
}

}  // namespace
}  // namespace nearwise
