// Containers: what is written comes back, blocks are verified when touched, versions are kept apart.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "io/container/container_reader.h"
#include "io/container/container_writer.h"
#include "io/container/metadata.h"
#include "io/expect_error.h"
#include "io/reseal.h"
#include "io/temporary_folder.h"

namespace nearwise {
namespace {

using container::Element;
using testing_io::read_all;
using testing_io::reseal;
using testing_io::TemporaryFolder;
using testing_io::write_all;
using Json = nlohmann::json;

std::vector<std::byte> pattern(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i * 2654435761U >> 13) + seed);
  return bytes;
}

// Three sections, the middle one of several blocks.
std::vector<std::byte> make_large(const TemporaryFolder& folder) {
  const auto large = pattern(3 * container::block_bytes + 12345, 1);
  ContainerWriter writer(folder / "a.nw", "sample");
  writer.write_metadata({{"answer", 42}});
  writer.begin_section("large", Element::bytes);
  writer.append(large);
  writer.begin_section("small", Element::bytes);
  writer.append(pattern(10, 2));
  writer.commit();
  return large;
}

TEST(Container, RoundTripOfEveryElement) {
  const TemporaryFolder folder;
  Matrix<double> wide(3, 5);
  Matrix<std::uint16_t> narrow(7, 1);
  std::iota(wide.data(), wide.data() + 15, 0.5);
  std::iota(narrow.data(), narrow.data() + 7, std::uint16_t{65000});
  const Matrix<std::int8_t> none(0, 9);
  {
    ContainerWriter writer(folder / "a.nw", "sample");
    writer.write_section("wide", wide.view());
    writer.write_section("none", none.view());
    writer.write_metadata({{"text", "ü"}, {"nested", {{"list", {1, 2, 3}}}}});
    writer.write_section("narrow", narrow.view(), Presence::optional);
    // Columns 1 to 3 of 5: rows that do not follow each other.
    writer.write_section("slice", MatrixView<const double>(wide.data() + 1, 3, 3, 5));
    writer.commit();
  }
  const ContainerReader reader = ContainerReader::open(folder / "a.nw");
  EXPECT_EQ(reader.header().kind, "sample");
  EXPECT_EQ(reader.sections().size(), 5U);
  EXPECT_EQ(reader.metadata()["nested"]["list"][2], 3);
  EXPECT_EQ(reader.metadata()["text"], "ü");
  for (const container::Section& section : reader.sections()) EXPECT_EQ(section.offset % 4096, 0U);
  const auto read = reader.section("wide").rows<double>();
  ASSERT_EQ(read.rows(), 3U);
  ASSERT_EQ(read.cols(), 5U);
  EXPECT_EQ(std::memcmp(read.data(), wide.data(), 15 * sizeof(double)), 0);
  EXPECT_EQ(reader.section("narrow").rows<std::uint16_t>(6, 1)(0, 0), 65006);
  EXPECT_FALSE(reader.section("narrow").info().required);
  EXPECT_EQ(reader.section("none").rows<std::int8_t>().rows(), 0U);
  EXPECT_EQ(reader.section("none").rows<std::int8_t>().cols(), 9U);
  EXPECT_EQ(reader.section("slice").rows<double>()(2, 0), wide(2, 1));
  reader.verify();
  EXPECT_ERROR(reader.section("absent"), corrupt, "'absent' is missing");
  EXPECT_ERROR(reader.section("wide").rows<float>(), corrupt, "f32 expected, f64 found");
}

TEST(Container, WithoutSections) {
  const TemporaryFolder folder;
  ContainerWriter(folder / "a.nw", "empty").commit();
  EXPECT_EQ(std::filesystem::file_size(folder / "a.nw"), 4096U);
  const ContainerReader reader = ContainerReader::open(folder / "a.nw");
  reader.verify();
  EXPECT_TRUE(reader.sections().empty());
}

TEST(Container, SameContentSameBytesHoweverItWasCut) {
  const TemporaryFolder folder;
  const auto content = pattern(2 * container::block_bytes + 77, 3);
  for (const std::size_t piece :
       {content.size(), std::size_t{1} << 20, std::size_t{99991}, std::size_t{4096}}) {
    ContainerWriter writer(folder / (std::to_string(piece) + ".nw"), "sample");
    writer.begin_section("content", Element::bytes);
    for (std::size_t first = 0; first < content.size(); first += piece)
      writer.append(std::span(content).subspan(first, std::min(piece, content.size() - first)));
    writer.commit();
    EXPECT_EQ(read_all(folder / (std::to_string(piece) + ".nw")),
              read_all(folder / (std::to_string(content.size()) + ".nw")));
  }
}

TEST(Container, BlocksAreVerifiedWhenTouched) {
  const TemporaryFolder folder;
  const auto large = make_large(folder);
  auto bytes = read_all(folder / "a.nw");
  const std::uint64_t offset = ContainerReader::open(folder / "a.nw").section("large").info().offset;
  bytes[offset + 2 * container::block_bytes + 5] ^= std::byte{1};  // damage in the third block
  write_all(folder / "b.nw", bytes);

  const ContainerReader reader = ContainerReader::open(folder / "b.nw");
  const SectionView section = reader.section("large");
  EXPECT_EQ(reader.verified_blocks(), 0U);
  const auto first = section.bytes(100, 50);
  EXPECT_EQ(std::memcmp(first.data(), large.data() + 100, 50), 0);
  EXPECT_EQ(reader.verified_blocks(), 1U);
  section.bytes(container::block_bytes - 1, 2);
  EXPECT_EQ(reader.verified_blocks(), 2U);
  section.bytes(large.size() - 1, 1);
  EXPECT_EQ(reader.verified_blocks(), 3U);
  section.bytes(2 * container::block_bytes, 0);
  EXPECT_EQ(reader.verified_blocks(), 3U);
  const std::string place =
      "'large', block 2 at file offset " + std::to_string(offset + 2 * container::block_bytes);
  EXPECT_ERROR(section.bytes(2 * container::block_bytes - 1, 2), corrupt, place);
  EXPECT_ERROR(section.bytes(), corrupt, place);
  EXPECT_ERROR(reader.verify(), corrupt, place);
  EXPECT_EQ(reader.verified_blocks(), 3U + 1U);  // and the metadata, which lies before
}

TEST(Container, ManyThreadsVerifyOneReader) {
  const TemporaryFolder folder;
  const auto large = make_large(folder);
  const ContainerReader reader = ContainerReader::open(folder / "a.nw");
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 2000; ++i) {
        const std::size_t first = (i * 7919 + t * 104729) * 31 % (large.size() - 64);
        const auto bytes = reader.section("large").bytes(first, 64);
        if (std::memcmp(bytes.data(), large.data() + first, 64) != 0) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(reader.verified_blocks(), 4U);
}

TEST(Container, AReaderOutlivesTheReplacementOfItsFile) {
  const TemporaryFolder folder;
  const auto large = make_large(folder);
  ContainerReader first = ContainerReader::open(folder / "a.nw");
  const ContainerReader reader = std::move(first);
  ContainerWriter(folder / "a.nw", "empty").commit();
  EXPECT_EQ(reader.section("large").bytes().back(), large.back());
  EXPECT_EQ(ContainerReader::open(folder / "a.nw").header().kind, "empty");
}

TEST(Container, KindsAreToldApart) {
  const TemporaryFolder folder;
  make_large(folder);
  const ContainerReader reader = ContainerReader::open(folder / "a.nw");
  reader.expect("sample", {"metadata", "large", "small", "more"});
  EXPECT_ERROR(reader.expect("neighbors", {}), invalid_argument, "'neighbors' expected, 'sample' found");
  EXPECT_ERROR(reader.expect("sample", {"metadata", "large"}), unsupported,
               "section 'small' is required and unknown to this build; needs nearwise >= 0.1.0");
}

// A small file with fields changed and checksums made right.
class Versions : public testing::Test {
 protected:
  void SetUp() override {
    ContainerWriter writer(folder_ / "a.nw", "sample");
    writer.write_metadata({{"answer", 42}});
    writer.begin_section("extra", Element::u8, {.presence = Presence::optional});
    writer.append(pattern(10, 2));
    writer.commit();
    bytes_ = read_all(folder_ / "a.nw");
    table_ = load<std::uint64_t>(bytes_.data() + 64);
  }
  template <typename T>
  void set(std::size_t offset, T value) {
    store(bytes_.data() + offset, value);
  }
  void needs(std::uint16_t major, std::uint16_t minor, std::uint16_t patch) {
    set(12, major), set(14, minor), set(16, patch);
  }
  ContainerReader open() {
    reseal(bytes_);
    return {bytes_, "memory"};
  }
  std::size_t extra_entry() const { return table_ + 64; }

  TemporaryFolder folder_;
  std::vector<std::byte> bytes_;
  std::size_t table_ = 0;
};

TEST_F(Versions, AnotherMajorNamesTheReleaseItNeeds) {
  needs(3, 4, 5);
  set<std::uint16_t>(8, 2);
  EXPECT_ERROR(open(), unsupported,
               "format version 2.0 needs nearwise >= 3.4.5; this build reads versions 1.x");
  set<std::uint16_t>(8, 0);
  EXPECT_ERROR(open(), unsupported, "format version 0.0");
}

TEST_F(Versions, ANewerMinorIsReadAsFarAsItIsKnown) {
  needs(0, 9, 1);
  set<std::uint16_t>(10, 7);
  set<std::uint64_t>(88, 123);  // reserved bytes that got a meaning
  EXPECT_EQ(open().metadata()["answer"], 42);
  open().expect("sample", {"metadata"});  // 'extra' is not required: ignored
  set<std::uint16_t>(extra_entry() + 56, 99);
  set<std::uint16_t>(extra_entry() + 58, 1);
  EXPECT_EQ(open().metadata()["answer"], 42);  // of elements unknown to us: still ignored
  open().verify();
}

TEST_F(Versions, ANewerMinorIsRefusedWhenItSaysSo) {
  needs(0, 9, 1);
  set<std::uint16_t>(10, 7);
  set<std::uint32_t>(extra_entry() + 60, 1);
  EXPECT_ERROR(open().expect("sample", {"metadata"}), unsupported, "needs nearwise >= 0.9.1");
  set<std::uint32_t>(extra_entry() + 60, 2);  // a flag unknown to us
  EXPECT_ERROR(open(), unsupported, "needs nearwise >= 0.9.1");
  set<std::uint32_t>(extra_entry() + 60, 1);
  set<std::uint16_t>(extra_entry() + 56, 99);
  EXPECT_ERROR(open(), unsupported, "needs nearwise >= 0.9.1");
}

TEST_F(Versions, OurOwnMinorHasNoUnknowns) {
  set<std::uint64_t>(88, 123);
  EXPECT_ERROR(open(), corrupt, "reserved");
  set<std::uint64_t>(88, 0);
  set<std::uint32_t>(extra_entry() + 60, 2);
  EXPECT_ERROR(open(), corrupt, "flags");
  set<std::uint32_t>(extra_entry() + 60, 0);
  set<std::uint16_t>(extra_entry() + 56, 99);
  EXPECT_ERROR(open(), corrupt, "element");
}

TEST(Metadata, Limits) {
  const auto parse = [](const std::string& text) {
    return parse_metadata(std::as_bytes(std::span(text)), "memory");
  };
  EXPECT_EQ(parse(R"({"a": {"b": 1}, "c": {"b": 2}})")["c"]["b"], 2);
  EXPECT_ERROR(parse(""), corrupt, "metadata");
  EXPECT_ERROR(parse("[1]"), corrupt, "object");
  EXPECT_ERROR(parse("{} {}"), corrupt, "metadata");
  EXPECT_ERROR(parse(R"({"a": 1, "b": {"a": 1}, "a": 2})"), corrupt, "key 'a' twice");
  EXPECT_ERROR(parse("{\"a\": \"\xff\"}"), corrupt, "metadata");
  EXPECT_ERROR(parse(std::string("{\"a\": 1}\0", 9)), corrupt, "metadata");
  EXPECT_ERROR(parse("{\"a\":" + std::string(500'000, '[')), corrupt, "deeper");
  const auto nested = [](std::size_t depth) {
    return "{\"a\":" + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
  };
  parse(nested(32));
  EXPECT_ERROR(parse(nested(33)), corrupt, "deeper");
  metadata_text(Json::parse(nested(32)));
  EXPECT_ERROR(metadata_text(Json::parse(nested(33))), invalid_argument, "deep");
  EXPECT_ERROR(metadata_text({{"a", std::string(1 << 20, 'x')}}), invalid_argument, "bytes");
  EXPECT_EQ(metadata_text({{"a", "\xff"}}), "{\"a\":\"\xEF\xBF\xBD\"}");
}

}  // namespace
}  // namespace nearwise
