// Damaged and hostile containers: every flipped bit and every truncation is found, and with checksums made
// right again the structure alone keeps the reader safe.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "core/math/random.h"
#include "io/container/container_reader.h"
#include "io/container/container_writer.h"
#include "io/container/neighbors_container.h"
#include "io/expect_error.h"
#include "io/reseal.h"
#include "io/temporary_folder.h"

namespace nearwise {
namespace {

using container::Element;
using testing_io::read_all;
using testing_io::reseal;
using testing_io::TemporaryFolder;

using Bytes = std::vector<std::byte>;

Bytes saved_neighbors() {
  const TemporaryFolder folder;
  SavedNeighbors result;
  result.neighbors.ids = Matrix<Id>(5, 3);
  result.neighbors.distances = Matrix<float>(5, 3);
  for (std::size_t i = 0; i < 15; ++i) {
    result.neighbors.ids.data()[i] = static_cast<Id>(i * 1000);
    result.neighbors.distances.data()[i] = 0.25F * static_cast<float>(i);
  }
  result.provenance = {{"command", "test"}};
  save(result, folder / "a.nw");
  return read_all(folder / "a.nw");
}

// True: an Error, as it must be for damage. Anything but Error or a sound object ends the test.
bool refused(std::span<const std::byte> bytes) {
  try {
    const ContainerReader reader(bytes, "memory");
    const SavedNeighbors result = decode_neighbors(reader);
    describe(reader);
    // A sound object: every value can be used.
    EXPECT_EQ(result.neighbors.ids.rows(), result.neighbors.distances.rows());
    EXPECT_EQ(result.neighbors.ids.cols(), result.neighbors.distances.cols());
    EXPECT_LE(result.neighbors.ids.rows() * result.neighbors.ids.cols() * 12, bytes.size());
    for (std::size_t row = 0; row < result.neighbors.ids.rows(); ++row)
      for (const Id id : result.neighbors.ids.row(row)) EXPECT_GE(id, no_id);
    return false;
  } catch (const Error&) {
    return true;
  }
}

TEST(ContainerDamage, EveryFlippedBitIsFound) {
  Bytes bytes = saved_neighbors();
  ASSERT_FALSE(refused(bytes));
  const auto table = load<std::uint64_t>(bytes.data() + 64);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const bool dense = i < container::header_bytes || i >= table;
    for (int bit = 0; bit < 8; ++bit) {
      if (!dense && bit != static_cast<int>(i % 8)) continue;
      bytes[i] ^= static_cast<std::byte>(1 << bit);
      ASSERT_TRUE(refused(bytes)) << "byte " << i << " bit " << bit;
      bytes[i] ^= static_cast<std::byte>(1 << bit);
    }
    bytes[i] ^= std::byte{0xFF};
    ASSERT_TRUE(refused(bytes)) << "byte " << i;
    bytes[i] ^= std::byte{0xFF};
  }
}

TEST(ContainerDamage, EveryTruncationAndExtensionIsFound) {
  const Bytes bytes = saved_neighbors();
  for (std::size_t length = 0; length < bytes.size(); ++length)
    ASSERT_TRUE(refused(std::span(bytes).first(length))) << length;
  Bytes longer = bytes;
  for (const std::size_t more : {1, 8, 64, 4096}) {
    longer.assign(bytes.begin(), bytes.end());
    longer.resize(bytes.size() + more);
    EXPECT_TRUE(refused(longer)) << more;
  }
}

TEST(ContainerDamage, TextModeIsRecognised) {
  Bytes bytes = saved_neighbors();
  bytes.erase(bytes.begin() + 4);  // CR LF to LF
  EXPECT_ERROR(ContainerReader(bytes, "memory"), corrupt, "text mode");
  bytes = saved_neighbors();
  bytes[0] = std::byte{0x09};  // the top bit
  EXPECT_ERROR(ContainerReader(bytes, "memory"), corrupt, "text mode");
  bytes.assign(20000, std::byte{'x'});
  EXPECT_ERROR(ContainerReader(bytes, "memory"), corrupt, "no nearwise file");
}

// Each field in turn gets values that break things; the checksums are right.
TEST(ContainerDamage, HostileFieldsWithRightChecksums) {
  const Bytes sound = saved_neighbors();
  const auto table = load<std::uint64_t>(sound.data() + 64);
  std::vector<std::pair<std::size_t, std::size_t>> fields = {{20, 4}, {56, 8}, {64, 8}, {72, 8}};
  for (std::size_t entry = 0; entry < 3; ++entry)
    for (const auto& [offset, size] : {std::pair{32, 8}, {40, 8}, {48, 8}, {56, 2}, {58, 2}, {60, 4}})
      fields.emplace_back(table + entry * 64 + static_cast<std::size_t>(offset), size);
  std::vector<std::uint64_t> values;
  for (unsigned shift = 0; shift < 64; ++shift)
    for (const std::uint64_t nearby : {-1, 0, 1}) values.push_back((std::uint64_t{1} << shift) + nearby);
  values.push_back(sound.size());
  for (const auto& [offset, size] : fields) {
    for (const std::uint64_t value : values) {
      Bytes bytes = sound;
      std::memcpy(bytes.data() + offset, &value, size);
      if (bytes == sound) continue;
      reseal(bytes);
      // The flag of a section that is known anyway is the only change that leaves a sound file.
      const std::size_t field = offset >= table ? (offset - table) % 64 : 0;
      EXPECT_TRUE(refused(bytes) || field == 60) << "field at " << offset << " value " << value;
    }
  }
}

TEST(ContainerDamage, RandomChangesWithRightChecksums) {
  const Bytes sound = saved_neighbors();
  const auto table = load<std::uint64_t>(sound.data() + 64);
  const Random random(42);
  std::uint64_t draw = 0;
  int survivors = 0;
  for (int round = 0; round < 4000; ++round) {
    Bytes bytes = sound;
    for (std::uint64_t changes = 1 + random.below(draw++, 4); changes != 0; --changes) {
      // Mostly where the structure is.
      const bool in_table = random.below(draw++, 2) == 0;
      const std::size_t position =
          in_table ? table + random.below(draw++, bytes.size() - table) : random.below(draw++, bytes.size());
      bytes[position] = static_cast<std::byte>(random.bits(draw++));
    }
    reseal(bytes);
    survivors += refused(bytes) ? 0 : 1;
  }
  EXPECT_GT(survivors, 0);  // changed ids and distances are sound objects
}

TEST(ContainerDamage, SwappedSectionsWithRightChecksums) {
  Bytes bytes = saved_neighbors();
  const auto table = load<std::uint64_t>(bytes.data() + 64);
  std::swap_ranges(bytes.begin() + static_cast<std::ptrdiff_t>(table + 64),
                   bytes.begin() + static_cast<std::ptrdiff_t>(table + 128),
                   bytes.begin() + static_cast<std::ptrdiff_t>(table + 128));
  EXPECT_TRUE(refused(bytes));
  reseal(bytes);
  EXPECT_ERROR(ContainerReader(bytes, "memory"), corrupt, "offset");
}

// Numbers of rows whose product with the size of a row wraps around to the size the file has.
TEST(ContainerDamage, WrappedRowsWithRightChecksums) {
  Bytes bytes = saved_neighbors();
  const auto table = load<std::uint64_t>(bytes.data() + 64);
  for (const std::size_t entry : {1, 2}) {
    std::byte* rows = bytes.data() + table + entry * 64 + 40;
    store(rows, load<std::uint64_t>(rows) + (std::uint64_t{1} << 62));  // times 24 or 12: a multiple of 2^64
  }
  // The blocks are as before, so only the table and the header need new checksums.
  store(bytes.data() + 80, container::checksum(std::span(bytes).subspan(table)));
  store(bytes.data() + 120, container::checksum(std::span(bytes).first(120)));
  EXPECT_ERROR(ContainerReader(bytes, "memory"), corrupt, "do not fit before the table");
}

// Places that no checksum would cover.
TEST(ContainerDamage, RoomForUncheckedBytesWithRightChecksums) {
  const Bytes sound = saved_neighbors();
  const auto table_offset = load<std::uint64_t>(sound.data() + 64);
  const auto table_bytes = load<std::uint64_t>(sound.data() + 72);

  Bytes gap = sound;  // a page between the last section and the table
  gap.insert(gap.begin() + static_cast<std::ptrdiff_t>(table_offset), 4096, std::byte{'x'});
  store(gap.data() + 56, static_cast<std::uint64_t>(gap.size()));
  store(gap.data() + 64, table_offset + 4096);
  reseal(gap);
  EXPECT_ERROR(ContainerReader(gap, "memory"), corrupt, "section table: offset");

  Bytes slack = sound;  // a checksum too many at the end of the table
  slack.resize(sound.size() + 8, std::byte{'x'});
  store(slack.data() + 56, static_cast<std::uint64_t>(slack.size()));
  store(slack.data() + 72, table_bytes + 8);
  reseal(slack);
  EXPECT_ERROR(ContainerReader(slack, "memory"), corrupt, "section table:");
}

TEST(ContainerDamage, TwoSectionsOfOneName) {
  Bytes bytes = saved_neighbors();
  const auto table = load<std::uint64_t>(bytes.data() + 64);
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(table), 32,
              bytes.begin() + static_cast<std::ptrdiff_t>(table + 64));
  reseal(bytes);
  EXPECT_ERROR(ContainerReader(bytes, "memory"), corrupt, "two sections have the name 'metadata'");
}

// Files that are whole, written by our own writer, and yet no neighbours.
class WrongNeighbors : public testing::Test {
 protected:
  // Writes a file with these sections, and what loading it says.
  std::string load_error(const nlohmann::json& metadata, const Matrix<Id>& ids,
                         const Matrix<float>& distances) {
    ContainerWriter writer(folder_ / "a.nw", "neighbors");
    writer.write_metadata(metadata);
    writer.write_section("ids", ids.view());
    writer.write_section("distances", distances.view());
    writer.commit();
    return load_error();
  }
  std::string load_error() {
    try {
      load_neighbors(folder_ / "a.nw");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt) << error.what();
      EXPECT_THROW(verify(folder_ / "a.nw"), Error);
      return error.what();
    }
    return "";
  }
  template <typename T>
  static Matrix<T> filled(std::size_t rows, std::size_t cols, T value) {
    Matrix<T> matrix(rows, cols);
    std::fill_n(matrix.data(), rows * cols, value);
    return matrix;
  }

  TemporaryFolder folder_;
  nlohmann::json good_ = {{"metric", "cosine"}, {"provenance", nlohmann::json::object()}};
  Matrix<Id> ids_ = filled<Id>(2, 3, 7);
  Matrix<float> distances_ = filled<float>(2, 3, 0.5F);
};

TEST_F(WrongNeighbors, Shapes) {
  EXPECT_EQ(load_error(good_, ids_, distances_), "");
  EXPECT_NE(load_error(good_, ids_, filled<float>(3, 2, 0)).find("one shape"), std::string::npos);
  EXPECT_NE(load_error(good_, ids_, filled<float>(2, 2, 0)).find("[2, 3] and [2, 2]"), std::string::npos);
}

TEST_F(WrongNeighbors, Values) {
  EXPECT_NE(load_error(good_, filled<Id>(2, 3, -2), distances_).find("-2 found"), std::string::npos);
  EXPECT_NE(load_error(good_, ids_, filled<float>(2, 3, NAN)).find("NaN"), std::string::npos);
  EXPECT_EQ(load_error(good_, filled<Id>(2, 3, -1), filled<float>(2, 3, INFINITY)), "");
}

TEST_F(WrongNeighbors, Metadata) {
  using Json = nlohmann::json;
  const Json empty = Json::object();
  EXPECT_NE(load_error(empty, ids_, distances_).find("'metric'"), std::string::npos);
  EXPECT_NE(load_error({{"metric", 3}, {"provenance", empty}}, ids_, distances_).find("'metric'"),
            std::string::npos);
  EXPECT_NE(load_error({{"metric", "hamming"}, {"provenance", empty}}, ids_, distances_).find("'hamming'"),
            std::string::npos);
  EXPECT_NE(load_error({{"metric", "cosine"}}, ids_, distances_).find("'provenance'"), std::string::npos);
  EXPECT_NE(load_error({{"metric", "cosine"}, {"provenance", {{"a", 1}}}}, ids_, distances_).find("'a'"),
            std::string::npos);
}

TEST_F(WrongNeighbors, MissingOrMistypedSections) {
  {
    ContainerWriter writer(folder_ / "a.nw", "neighbors");
    writer.write_metadata(good_);
    writer.write_section("ids", ids_.view());
    writer.commit();
  }
  EXPECT_NE(load_error().find("'distances' is missing"), std::string::npos);
  {
    ContainerWriter writer(folder_ / "a.nw", "neighbors");
    writer.begin_section("metadata", Element::u8);
    writer.append(std::as_bytes(std::span("{}", 2)));
    writer.write_section("ids", ids_.view());
    writer.write_section("distances", distances_.view());
    writer.commit();
  }
  EXPECT_NE(load_error().find("elements json"), std::string::npos);
  {
    ContainerWriter writer(folder_ / "a.nw", "neighbors");
    writer.begin_section("metadata", Element::json);
    writer.append(Bytes((1 << 20) + 1, std::byte{' '}));
    writer.write_section("ids", ids_.view());
    writer.write_section("distances", distances_.view());
    writer.commit();
  }
  EXPECT_NE(load_error().find("at most 1048576 bytes"), std::string::npos);
}

}  // namespace
}  // namespace nearwise
