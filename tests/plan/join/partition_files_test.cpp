// Work files of joins by partitions whose checksums are right and whose numbers are not; and reading their
// pairs in parts.
#include "plan/join/partition_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "io/container/container_writer.h"
#include "plan/join/join_plan_fixture.h"

namespace nearwise::plan {
namespace {

class DamagedJoinFiles : public JoinPlanTest {
 protected:
  void SetUp() override {
    make_file(support::Kind::normal, 60, 2);
    work = join_work(context(), files("work"), 0.25F, {.method = JoinMethod::partitions});
    work.block_rows = 30;
    work.partitions.groups = 2;
    const Plan plan = plan_of(context(), work);
    for (const char* const task : {"input", "train", "assign-0000", "assign-0001", "compare-0000"})
      plan.run_task(context(), task);
    const JoinCentroids trained(work);
    all = trained.centroids.rows();
    partitions = trained.group(work, 1);
    const ContainerReader assigned = ContainerReader::open(work.file_of(assign_join_name(1)));
    ends = copy<std::uint64_t>(assigned, "ends_0");
    rows = copy<std::uint32_t>(assigned, "rows_0");
    vectors = copy<std::uint8_t>(assigned, "vectors_0");
    const ContainerReader compared = ContainerReader::open(work.file_of(compare_name(0)));
    pairs = copy<std::uint32_t>(compared, "pairs");
    pair_ends = copy<std::uint64_t>(compared, "ends");
    ASSERT_GT(pairs.rows(), 0U);
  }
  template <typename T>
  static Matrix<T> copy(const ContainerReader& reader, const char* section) {
    return copy_of(reader.section(section).rows<T>());
  }
  static Matrix<float> zeros(std::size_t count, std::size_t dim) {
    Matrix<float> matrix(count, dim);
    std::ranges::fill(std::span(matrix.data(), count * dim), 0.0F);
    return matrix;
  }
  void expect_assignment_refused(const std::string& message) const {
    ContainerWriter writer(work.file_of(assign_join_name(1)), "join_assignment");
    writer.write_section("ends_0", MatrixView<const std::uint64_t>(ends));
    writer.write_section("rows_0", MatrixView<const std::uint32_t>(rows));
    writer.write_section("vectors_0", MatrixView<const std::uint8_t>(vectors));
    writer.write_metadata({{"parts", parts}});
    writer.commit();
    EXPECT_ERROR(AssignedGroup(context(), work, partitions, all), corrupt, message);
  }
  void expect_pairs_refused(const std::string& message) const {
    ContainerWriter writer(work.file_of(compare_name(0)), "join_found");
    writer.write_section("pairs", MatrixView<const std::uint32_t>(pairs));
    writer.write_section("ends", MatrixView<const std::uint64_t>(pair_ends));
    writer.write_metadata({{"stored", stored_vectors}, {"compared", compared_pairs}});
    writer.commit();
    const auto read = [&] {
      const FoundPairs found(work, 0);
      for (std::size_t block = 0; block < work.blocks(); ++block)
        found.for_each(work, block, work.block(block), [](std::size_t, const duplicates::Duplicate&) {});
    };
    EXPECT_ERROR(read(), corrupt, message);
  }

  JoinWork work;
  std::size_t all = 0;
  JoinCentroids::Range partitions;
  int parts = 1;
  std::uint64_t stored_vectors = 1;
  std::uint64_t compared_pairs = 1;
  Matrix<std::uint64_t> ends;
  Matrix<std::uint32_t> rows;
  Matrix<std::uint8_t> vectors;
  Matrix<std::uint32_t> pairs;
  Matrix<std::uint64_t> pair_ends;
};

TEST_F(DamagedJoinFiles, EndsBehindTheVectors) {
  ends(ends.rows() - 1, 0) += 1;
  expect_assignment_refused("ends of");
}
TEST_F(DamagedJoinFiles, EndsThatDescend) {
  ends(0, 0) = ends(ends.rows() - 1, 0) + 1;
  expect_assignment_refused("ends of");
}
TEST_F(DamagedJoinFiles, RowOfAnotherBlock) {
  rows(rows.rows() - 1, 0) = 3;
  expect_assignment_refused("rows 30 to 59 expected");
}
TEST_F(DamagedJoinFiles, FewerVectorsThanRows) {
  vectors = Matrix<std::uint8_t>(vectors.rows() - 1, vectors.cols());
  std::ranges::fill(std::span(vectors.data(), vectors.rows() * vectors.cols()), std::uint8_t{0});
  expect_assignment_refused("vectors of 8 bytes expected");
}
TEST_F(DamagedJoinFiles, PartThatIsMissing) {
  parts = 2;
  expect_assignment_refused("_1");
}
TEST_F(DamagedJoinFiles, MorePartsThanSections) {
  parts = 5;
  expect_assignment_refused("'parts' of at most 4 expected, 5 found");
}
// Every vector in every partition.
TEST_F(DamagedJoinFiles, MoreVectorsStoredThanInAllPartitions) {
  const std::uint64_t most = 60 * work.partitions.count;
  stored_vectors = most + 1;
  expect_pairs_refused(fmt::format("'stored' of at most {} expected", most));
}
TEST_F(DamagedJoinFiles, MorePairsComparedThanThereAre) {
  const std::uint64_t most = 60 * 60 * work.partitions.count;
  compared_pairs = most + 1;
  expect_pairs_refused(fmt::format("'compared' of at most {} expected", most));
}
TEST_F(DamagedJoinFiles, PairOfARowOfAnotherBlock) {
  pairs(0, 0) = 59;
  expect_pairs_refused("pairs of rows");
}
TEST_F(DamagedJoinFiles, PairWithAnEarlierRow) {
  pairs(0, 1) = pairs(0, 0);
  expect_pairs_refused("pairs of rows");
}
TEST_F(DamagedJoinFiles, PairWithNoDistance) {
  pairs(0, 2) = 0x7FC00000;
  expect_pairs_refused("pairs of rows");
}
// By which a part of the rows finds its pairs.
TEST_F(DamagedJoinFiles, PairsOfARunInAnotherOrder) {
  const std::size_t last = pair_ends(0, 0) - 1;  // of the first block
  ASSERT_LT(pairs(0, 0), pairs(last, 0));
  std::ranges::swap_ranges(pairs.row(0), pairs.row(last));
  expect_pairs_refused("pairs of rows 0 to 29 in their order");
}
TEST_F(DamagedJoinFiles, EndsOfNoBlocks) {
  pair_ends = Matrix<std::uint64_t>(1, 1);
  pair_ends(0, 0) = pairs.rows();
  expect_pairs_refused("runs of pairs of 2 blocks");
}
TEST_F(DamagedJoinFiles, OtherCentroids) {
  for (const std::size_t dim : {5UL, 2UL}) {
    const Matrix<float> centroids = zeros(3, dim);
    const Matrix<float> between = zeros(3, 4);
    ContainerWriter writer(work.file_of(train_join_name), "join_partitions");
    writer.write_metadata(nlohmann::json::object());
    writer.write_section("centroids", MatrixView<const float>(centroids));
    writer.write_section("between", MatrixView<const float>(between));
    writer.commit();
    EXPECT_ERROR(
        JoinCentroids{work}, corrupt,
        dim == 5 ? "centroids of 2 elements expected, 3 of 5 found" : "between 3 centroids expected");
  }
}

class PairsOfRows : public DamagedJoinFiles {
 protected:
  void SetUp() override {
    DamagedJoinFiles::SetUp();
    work.partitions.run_pairs = 7;  // so that there are several runs
    compare_partitions(context(), work, 0);
  }
  using Pair = std::array<std::size_t, 2>;
  std::vector<Pair> read(const FoundPairs& found, std::size_t block, RowRange range) const {
    std::vector<Pair> visited;
    found.for_each(work, block, range, [&](std::size_t row, const duplicates::Duplicate& other) {
      visited.push_back({row, other.row});
    });
    return visited;
  }
};

TEST_F(PairsOfRows, AreThoseOfTheRange) {
  const FoundPairs found(work, 0);
  std::size_t visited = 0;
  for (std::size_t block = 0; block < work.blocks(); ++block) {
    const RowRange whole = work.block(block);
    const std::vector<Pair> of_block = read(found, block, whole);
    visited += of_block.size();
    for (std::size_t first = whole.first; first < whole.end(); first += 3)
      for (const std::size_t count : {0UL, 1UL, 2UL, whole.end() - first}) {
        const RowRange range = {first, std::min(count, whole.end() - first)};
        std::vector<Pair> expected;
        std::ranges::copy_if(of_block, std::back_inserter(expected), [&](const Pair& pair) {
          return pair[0] >= range.first && pair[0] < range.end();
        });
        EXPECT_EQ(read(found, block, range), expected) << range.first << " " << range.count;
      }
  }
  EXPECT_EQ(visited, pairs.rows());
  EXPECT_GT(visited, 7U);
}

// Also of blocks whose checksums were verified before, which are read without that check.
TEST_F(PairsOfRows, ReadingThemIsCancelled) {
  const FoundPairs found(work, 0);
  const RowRange block = work.block(0);
  const RowRange first_row = {block.first, 1};
  EXPECT_FALSE(read(found, 0, block).empty());
  const Context stopped = context();
  const CancellationScope scope(stopped);
  stopped.cancel();
  EXPECT_ERROR(read(found, 0, block), cancelled, "");
  EXPECT_ERROR(read(found, 0, first_row), cancelled, "");
}

}  // namespace
}  // namespace nearwise::plan
