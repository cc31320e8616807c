// Saved neighbours: round trips, what save() refuses, failing disks, and files of earlier releases.
#include "nearwise/storage.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "io/expect_error.h"
#include "io/failing_calls.h"
#include "io/temporary_folder.h"

namespace nearwise {
namespace {

using testing_io::FailingCalls;
using testing_io::read_all;
using testing_io::TemporaryFolder;
using testing_io::write_all;
namespace fs = std::filesystem;

SavedNeighbors sample(std::size_t rows, std::size_t k, int seed) {
  SavedNeighbors result;
  result.neighbors.ids = Matrix<Id>(rows, k);
  result.neighbors.distances = Matrix<float>(rows, k);
  for (std::size_t i = 0; i < rows * k; ++i) {
    result.neighbors.ids.data()[i] = static_cast<Id>(i) * 3'000'000'000 + seed;
    result.neighbors.distances.data()[i] = static_cast<float>(i) / 7 + static_cast<float>(seed);
  }
  result.metric = Metric::inner_product;
  result.provenance = {{"command", "nearwise knn"}, {"inputs", "ü.fbin \"x\"\n"}};
  return result;
}

bool equal(const SavedNeighbors& a, const SavedNeighbors& b) {
  const std::size_t size = a.neighbors.ids.rows() * a.neighbors.ids.cols();
  return a.neighbors.ids.rows() == b.neighbors.ids.rows() &&
         a.neighbors.ids.cols() == b.neighbors.ids.cols() &&
         a.neighbors.distances.rows() == b.neighbors.distances.rows() &&
         a.neighbors.distances.cols() == b.neighbors.distances.cols() &&
         std::memcmp(a.neighbors.ids.data(), b.neighbors.ids.data(), size * sizeof(Id)) == 0 &&
         std::memcmp(a.neighbors.distances.data(), b.neighbors.distances.data(), size * sizeof(float)) == 0 &&
         a.metric == b.metric && a.provenance == b.provenance;
}

TEST(Storage, RoundTrip) {
  const TemporaryFolder folder;
  for (const auto& [rows, k] :
       {std::pair<std::size_t, std::size_t>{0, 10}, {1, 1}, {1, 5000}, {5000, 1}, {333, 100}}) {
    const SavedNeighbors result = sample(rows, k, 1);
    save(result, folder / "a.nw");
    EXPECT_TRUE(equal(load_neighbors(folder / "a.nw"), result)) << rows << " x " << k;
    // What was loaded saves to the same bytes.
    save(load_neighbors(folder / "a.nw"), folder / "b.nw");
    EXPECT_EQ(read_all(folder / "a.nw"), read_all(folder / "b.nw"));
  }
}

TEST(Storage, PaddedRows) {
  const TemporaryFolder folder;
  SavedNeighbors result = sample(2, 3, 0);
  result.neighbors.ids(1, 2) = no_id;
  result.neighbors.distances(1, 2) = std::numeric_limits<float>::infinity();
  result.neighbors.distances(0, 0) = -0.0F;
  save(result, folder / "a.nw");
  EXPECT_TRUE(equal(load_neighbors(folder / "a.nw"), result));
}

TEST(Storage, RefusesWhatItCouldNotLoad) {
  const TemporaryFolder folder;
  SavedNeighbors result = sample(2, 3, 0);
  result.neighbors.ids(1, 1) = -2;
  EXPECT_ERROR(save(result, folder / "a.nw"), invalid_argument, "row 1");
  result = sample(2, 3, 0);
  result.neighbors.distances(1, 1) = NAN;
  EXPECT_ERROR(save(result, folder / "a.nw"), invalid_argument, "NaN");
  result = sample(2, 3, 0);
  result.neighbors.distances = Matrix<float>(3, 2);
  EXPECT_ERROR(save(result, folder / "a.nw"), invalid_argument, "[2, 3] and [3, 2]");
  EXPECT_ERROR(save(SavedNeighbors{}, folder / "a.nw"), invalid_argument, "at least one neighbour");
  result = sample(2, 3, 0);
  result.provenance["log"] = std::string(2 << 20, 'x');
  EXPECT_ERROR(save(result, folder / "a.nw"), invalid_argument, "metadata");
  EXPECT_TRUE(folder.names().empty());
  EXPECT_ERROR(save(sample(1, 1, 0), folder / "none/a.nw"), cannot_create,
               "none/a.nw: No such file or directory");
}

TEST(Storage, ProvenanceThatIsNoText) {
  const TemporaryFolder folder;
  SavedNeighbors result = sample(1, 1, 0);
  result.provenance["inputs"] = "caf\xe9.fbin";  // a file name in Latin-1
  save(result, folder / "a.nw");
  EXPECT_EQ(load_neighbors(folder / "a.nw").provenance["inputs"], "caf\xEF\xBF\xBD.fbin");
}

TEST(Storage, InspectAndVerify) {
  const TemporaryFolder folder;
  save(sample(20000, 20, 0), folder / "a.nw");
  for (const ContainerInfo& info : {inspect(folder / "a.nw"), verify(folder / "a.nw")}) {
    EXPECT_EQ(info.kind, "neighbors");
    EXPECT_EQ(info.version_major, 1);
    EXPECT_EQ(info.version_minor, 0);
    EXPECT_EQ(info.bytes, fs::file_size(folder / "a.nw"));
    EXPECT_EQ(info.metadata.at("metric"), "inner_product");
    EXPECT_EQ(info.metadata.at("provenance.command"), "nearwise knn");
    ASSERT_EQ(info.sections.size(), 3U);
    EXPECT_EQ(info.sections[1].name, "ids");
    EXPECT_EQ(info.sections[1].element, "i64");
    EXPECT_EQ(info.sections[1].rows, 20000U);
    EXPECT_EQ(info.sections[1].columns, 20U);
    EXPECT_EQ(info.sections[1].bytes, 20000U * 20 * 8);
    EXPECT_EQ(info.sections[1].blocks, 4U);
    EXPECT_EQ(info.sections[1].offset % 4096, 0U);
  }
  auto bytes = read_all(folder / "a.nw");
  bytes[2'500'000] ^= std::byte{4};
  write_all(folder / "a.nw", bytes);
  EXPECT_EQ(inspect(folder / "a.nw").kind, "neighbors");  // reads no ids
  EXPECT_ERROR(verify(folder / "a.nw"), corrupt, "a.nw: section 'ids', block 2");
  EXPECT_ERROR(load_neighbors(folder / "a.nw"), corrupt, "a.nw: section 'ids', block 2");
}

TEST(Storage, WhatIsNoContainer) {
  const TemporaryFolder folder;
  EXPECT_ERROR(load_neighbors(folder / "a.nw"), not_found, "a.nw: No such file");
  EXPECT_ERROR(load_neighbors(folder.path()), invalid_argument, "folder");
  write_all(folder / "a.nw", std::string());
  EXPECT_ERROR(load_neighbors(folder / "a.nw"), corrupt, "at least 4096 bytes, found 0");
  write_all(folder / "a.nw", std::string(10000, '\0'));
  EXPECT_ERROR(inspect(folder / "a.nw"), corrupt, "no nearwise file");
}

TEST(Storage, EveryCallFailsOnce) {
  const TemporaryFolder folder;
  const SavedNeighbors before = sample(3, 4, 1), after = sample(100, 7, 2);
  for (int call = 1;; ++call) {
    save(before, folder / "a.nw");
    bool thrown = false;
    std::string failed_call;
    {
      const FailingCalls faults({.fail_call = call, .error = ENOSPC});
      try {
        save(after, folder / "a.nw");
      } catch (const Error& error) {
        thrown = true;
        EXPECT_NE(std::string(error.what()).find("No space left on device"), std::string::npos)
            << error.what();
      }
      failed_call = faults.failed_call();
    }
    const SavedNeighbors found = load_neighbors(folder / "a.nw");
    EXPECT_TRUE(equal(found, after) || (thrown && equal(found, before))) << call << " " << failed_call;
    if (failed_call != "unlink") {
      EXPECT_EQ(folder.names().size(), 1U) << call;
    }
    if (failed_call.empty()) break;
  }
}

// Files of released versions, readable for ever. Never rewrite them: add one per version that changes the
// format.
TEST(Golden, NeighborsOfVersion1_0) {
  const fs::path golden = fs::path(NEARWISE_GOLDEN_FILES) / "neighbors_1_0.nw";
  const ContainerInfo info = verify(golden);
  EXPECT_EQ(info.version_major, 1);
  EXPECT_EQ(info.version_minor, 0);
  SavedNeighbors expected;
  expected.metric = Metric::euclidean;
  expected.provenance = {{"command", "made by hand for tests/golden"}, {"inputs", "none"}};
  expected.neighbors.ids = Matrix<Id>(3, 2);
  expected.neighbors.distances = Matrix<float>(3, 2);
  const Id ids[] = {0, 5'000'000'000, 7, 8, 3, no_id};
  const float distances[] = {0.0F, 1.5F, 0.1F, 3e38F, 1e-40F, std::numeric_limits<float>::infinity()};
  std::copy_n(ids, 6, expected.neighbors.ids.data());
  std::copy_n(distances, 6, expected.neighbors.distances.data());
  EXPECT_TRUE(equal(load_neighbors(golden), expected));
  // Today's writer still writes the same bytes for it.
  const TemporaryFolder folder;
  save(expected, folder / "a.nw");
  EXPECT_EQ(read_all(folder / "a.nw"), read_all(golden));
}

}  // namespace
}  // namespace nearwise
