// What is written as .npz comes back by the definition of zip, and is the same every time.
#include "io/vectors/npz_writer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "io/expect_error.h"
#include "io/temporary_folder.h"
#include "io/vectors/npz_reader.h"

namespace nearwise {
namespace {

using testing_io::TemporaryFolder;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST(ZipChecksum, IsThatOfTheDefinitionInAnyPieces) {
  EXPECT_EQ(zip_checksum(bytes_of("123456789")), 0xCBF43926U);
  EXPECT_EQ(zip_checksum({}), 0U);
  std::string text;
  for (int i = 0; i < 100; ++i) text += static_cast<char>(i * 37);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const auto all = bytes_of(text);
    EXPECT_EQ(zip_checksum(all.subspan(cut), zip_checksum(all.first(cut))),
              testing_io::slow_zip_checksum(all))
        << cut;
  }
}

TEST(NpzWriter, WritesArraysOfAnyShape) {
  const TemporaryFolder folder;
  const std::vector<std::int32_t> numbers = {1, -2, 3, 4, 5, 6};
  for (const char* const name : {"one.npz", "two.npz"}) {
    NpzWriter writer(folder / name);
    writer.begin_array("matrix", "<i4", {2, 3});
    writer.append(std::as_bytes(std::span(numbers).first(2)));
    writer.append(std::as_bytes(std::span(numbers).subspan(2)));
    writer.begin_array("none", "<f4", {0});
    writer.begin_array("vector", "<i4", {6});
    writer.append(std::as_bytes(std::span(numbers)));
    writer.begin_array("word", "|S3", {});
    writer.append(bytes_of("csr"));
    writer.commit();
  }
  const auto arrays = testing_io::read_npz(folder / "one.npz");
  ASSERT_EQ(arrays.size(), 4U);
  EXPECT_EQ(arrays.at("matrix.npy").header.shape, (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(arrays.at("matrix.npy").as<std::int32_t>(), numbers);
  EXPECT_EQ(arrays.at("none.npy").header.shape, std::vector<std::uint64_t>{0});
  EXPECT_TRUE(arrays.at("none.npy").elements.empty());
  EXPECT_EQ(arrays.at("vector.npy").header.shape, std::vector<std::uint64_t>{6});
  EXPECT_EQ(arrays.at("vector.npy").header.descr, "<i4");
  EXPECT_TRUE(arrays.at("word.npy").header.shape.empty());
  EXPECT_EQ(arrays.at("word.npy").elements.size(), 3U);
  EXPECT_EQ(testing_io::read_all(folder / "one.npz"), testing_io::read_all(folder / "two.npz"));
}

TEST(NpzWriter, LeavesNothingWithoutCommit) {
  const TemporaryFolder folder;
  {
    NpzWriter writer(folder / "graph.npz");
    writer.begin_array("data", "<f4", {3});
  }
  EXPECT_TRUE(folder.names().empty());
  EXPECT_ERROR(NpzWriter(folder / "missing" / "graph.npz"), cannot_create, "missing");
}

}  // namespace
}  // namespace nearwise
