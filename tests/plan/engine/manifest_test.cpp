// The manifest: what was appended is read back, a torn end is dropped, any other damage is found, and no
// failing call loses what was written down before.
#include "plan/engine/manifest.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>

#include "io/expect_error.h"
#include "io/failing_calls.h"
#include "io/temporary_folder.h"
#include "plan/engine/file_lock.h"

namespace nearwise::plan {
namespace {

using testing_io::FailingCalls;
using testing_io::read_all;
using testing_io::TemporaryFolder;
using testing_io::write_all;
using Json = nlohmann::json;

Json record(int number) { return {{"task", "build-" + std::to_string(number)}, {"output", number * 1000}}; }

std::string text_of(const std::filesystem::path& path) {
  const auto bytes = read_all(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A manifest of three records.
class ManifestTest : public ::testing::Test {
 protected:
  ManifestTest() {
    for (int i = 0; i < 3; ++i) manifest.append(record(i));
    text = text_of(manifest.path());
  }

  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    for (std::size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1)
      all.push_back(text.substr(begin, text.find('\n', begin) + 1 - begin));
    return all;
  }

  const TemporaryFolder folder;
  const Manifest manifest{folder / "manifest"};
  std::string text;
};

TEST_F(ManifestTest, ReadsWhatWasAppended) {
  EXPECT_EQ(manifest.read(), (std::vector<Json>{record(0), record(1), record(2)}));
  EXPECT_TRUE(Manifest(folder / "none").read().empty());
}

TEST_F(ManifestTest, TornAtAnyByteTheEndIsDropped) {
  const std::size_t last = text.size() - lines().back().size();
  for (std::size_t length = last; length < text.size(); ++length) {
    write_all(manifest.path(), text.substr(0, length));
    EXPECT_EQ(manifest.read(), (std::vector<Json>{record(0), record(1)})) << length;
    manifest.append(record(3));
    EXPECT_EQ(manifest.read(), (std::vector<Json>{record(0), record(1), record(3)})) << length;
  }
  // Of a machine that was switched off: the length was written, the content was not.
  write_all(manifest.path(), text + std::string(100, '\0'));
  EXPECT_EQ(manifest.read().size(), 3U);
}

// A flipped bit in a checksum also costs the record after it, a flipped line feed both of its lines.
TEST_F(ManifestTest, AFlippedBitCostsOneOrTwoRecords) {
  for (std::size_t i = 0; i + 1 < text.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ 1 << bit);
      write_all(manifest.path(), damaged);
      std::vector<Json> kept = manifest.read();
      EXPECT_TRUE(kept.size() == 1 || kept.size() == 2) << i << " " << bit;
      for (const Json& some : kept)
        EXPECT_TRUE(some == record(0) || some == record(1) || some == record(2)) << i << " " << bit;
      // The next append leaves the damage out.
      manifest.append(record(3));
      kept.push_back(record(3));
      EXPECT_EQ(manifest.read(), kept) << i << " " << bit;
      manifest.append(record(4));
      kept.push_back(record(4));
      EXPECT_EQ(manifest.read(), kept) << i << " " << bit;
    }
}

TEST_F(ManifestTest, LinesThatDoNotFollowTheirPredecessorAreLeftOut) {
  const std::vector<std::string> line = lines();
  ASSERT_EQ(line.size(), 3U);
  const std::vector<std::pair<std::string, std::vector<int>>> cases = {
      {line[1] + line[2], {2}},           // lost
      {line[0] + line[2], {0}},           // lost
      {line[1] + line[0] + line[2], {}},  // moved
      {line[0] + line[0] + line[1] + line[2], {0, 1, 2}},
      {line[0] + line[1] + line[2] + line[2], {0, 1, 2}},
      {line[0] + "\n" + line[1] + line[2], {0, 2}},
  };
  for (const auto& [damaged, numbers] : cases) {
    write_all(manifest.path(), damaged);
    std::vector<Json> expected;
    for (const int number : numbers) expected.push_back(record(number));
    EXPECT_EQ(manifest.read(), expected) << damaged;
  }
}

// A line with a right checksum that would overflow the stack of code that reads it recursively.
TEST_F(ManifestTest, DeeplyNestedRecordsAreLeftOut) {
  constexpr std::size_t depth = 500'000;
  const std::string json = "{\"identity\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
  const Manifest nested(folder / "nested");
  write_all(nested.path(),
            json + fmt::format("\t{:016x}\n", XXH3_64bits_withSeed(json.data(), json.size(), 0)));
  EXPECT_TRUE(nested.read().empty());
}

TEST_F(ManifestTest, EveryCallFailsOnce) {
  for (const bool torn : {false, true})
    for (const std::size_t longest_write : {0, 5}) {
      int call = 1;
      for (bool failed = true; failed; ++call) {
        write_all(manifest.path(), torn ? text + "{\"task" : text);
        {
          const FailingCalls faults({.fail_call = call, .error = ENOSPC, .longest_write = longest_write});
          try {
            manifest.append(record(3));
          } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find("No space left on device"), std::string::npos);
          }
          failed = faults.failed();
        }
        const std::size_t there = manifest.read().size();
        EXPECT_TRUE(there == 3 || there == 4) << call;
        manifest.append(record(4));
        EXPECT_EQ(manifest.read().back(), record(4)) << call;
        EXPECT_EQ(manifest.read().size(), there + 1) << call;
      }
      EXPECT_GT(call, 4);
    }
}

TEST_F(ManifestTest, SeveralAppendAtOnce) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([this, thread] {
      for (int i = 0; i < 20; ++i) Manifest(manifest.path()).append(record(10 + thread * 20 + i));
    });
  for (std::thread& thread : threads) thread.join();
  std::set<std::string> tasks;
  for (const Json& each : manifest.read()) tasks.insert(each.at("task").get<std::string>());
  EXPECT_EQ(tasks.size(), 83U);
}

TEST(FileLock, IsSeenByOthers) {
  const TemporaryFolder folder;
  using Mode = FileLock::Mode;
  {
    const FileLock shared(folder / "lock", Mode::shared);
    const FileLock another(folder / "lock", Mode::shared);
    EXPECT_ERROR(FileLock(folder / "lock", Mode::exclusive), cannot_create, "somebody else is at work there");
  }
  const FileLock alone(folder / "lock", Mode::exclusive);
  EXPECT_ERROR(FileLock(folder / "lock", Mode::shared), cannot_create, "somebody else is at work there");
  EXPECT_ERROR(FileLock(folder / "none/lock", Mode::shared), cannot_create, "No such file");
}

}  // namespace
}  // namespace nearwise::plan
