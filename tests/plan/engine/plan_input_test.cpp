// The vector file of a plan: a change is found by every reader of that part.
#include "plan/engine/plan_input.h"

#include <gtest/gtest.h>

#include <fstream>
#include <vector>

#include "io/container/container_writer.h"
#include "io/expect_error.h"
#include "io/temporary_folder.h"
#include "nearwise/vector_file.h"
#include "support/graph_cases.h"

namespace nearwise::plan {
namespace {

using testing_io::read_all;
using testing_io::TemporaryFolder;
using testing_io::write_all;
namespace fs = std::filesystem;

constexpr std::size_t row_count = 20'000;
constexpr std::size_t dim = 16;

// Changes a byte and keeps size, inode and time of the last change.
void change(const fs::path& path, std::uint64_t offset) {
  const auto time = fs::last_write_time(path);
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    const char before = static_cast<char>(file.get());
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(before ^ 1));
  }
  fs::last_write_time(path, time);
}

class PlanInputTest : public ::testing::TestWithParam<const char*> {
 protected:
  PlanInputTest() {
    const support::Rows rows(support::generate(support::Kind::normal, row_count, dim, 3), ElementType::f32);
    VectorWriter writer(files_.vectors, ElementType::f32, dim);
    writer.append(rows);
    writer.commit();
    fs::create_directories(files_.work);
    input_task(files_, VectorFile::open(files_.vectors).rows()).work(context_);
  }

  PlanInput input() const { return {context_, files_}; }
  std::uint64_t offset_of(std::size_t row) const {
    const VectorFile file = VectorFile::open(files_.vectors);
    const std::uint64_t bytes = fs::file_size(files_.vectors);
    // The last row ends the file.
    return bytes - (row_count - row) * file.rows().stride_bytes() +
           (file.rows().stride_bytes() - dim * sizeof(float));
  }

  const TemporaryFolder folder_;
  const PlanFiles files_ = {
      .vectors = folder_ / (std::string("rows.") + GetParam()), .work = folder_ / "work", .output = {}};
  const Context context_ = Context::cpu({.threads = 2});
};

INSTANTIATE_TEST_SUITE_P(Formats, PlanInputTest, ::testing::Values("fbin", "npy", "fvecs"),
                         [](const auto& format) { return std::string(format.param); });

TEST_P(PlanInputTest, AnUnchangedFileIsReadAsItIs) {
  const PlanInput input = this->input();
  const VectorFile file = VectorFile::open(files_.vectors);
  EXPECT_EQ(input.all().rows(), row_count);
  const RowsView some = input.slice(777, 100);
  EXPECT_EQ(some.rows(), 100U);
  EXPECT_EQ(std::memcmp(some.row(3), file.rows().row(780), dim * sizeof(float)), 0);
  EXPECT_EQ(input.slice(row_count, 0).rows(), 0U);
}

TEST_P(PlanInputTest, AChangeIsFoundByWhoReadsIt) {
  for (const std::size_t row : {std::size_t{0}, std::size_t{12'345}, row_count - 1}) {
    change(files_.vectors, offset_of(row) + 7);
    EXPECT_ERROR(input().all(), invalid_argument, "has changed since the plan began");
    EXPECT_ERROR(input().slice(row, 1), invalid_argument, "has changed");
    const auto both = [&](std::size_t i) { return i == 0 ? std::size_t{5'000} : row; };
    EXPECT_ERROR(input().rows_at(2, both), invalid_argument, "has changed");
    // Rows far from it.
    input().rows_at(1, both);
    input().slice(5'000, 100);
    change(files_.vectors, offset_of(row) + 7);  // back
    input().all();
  }
}

TEST_P(PlanInputTest, EveryByteOfARowCounts) {
  for (std::size_t byte = 0; byte < dim * sizeof(float); ++byte) {
    change(files_.vectors, offset_of(9'999) + byte);
    EXPECT_ERROR(input().slice(9'999, 1), invalid_argument, "has changed");
    change(files_.vectors, offset_of(9'999) + byte);
  }
}

TEST_P(PlanInputTest, AnotherShapeIsNamed) {
  const support::Rows rows(support::generate(support::Kind::normal, 100, dim, 3), ElementType::f32);
  VectorWriter writer(files_.vectors, ElementType::f32, dim);
  writer.append(rows);
  writer.commit();
  EXPECT_ERROR(input(), invalid_argument, "had 20000 x 16 f32, now has 100 x 16 f32");
}

// Tasks read rows by the numbers that the plan has.
TEST_P(PlanInputTest, AFileThatShrankBeforeTheFirstTaskIsRefused) {
  const Task task = input_task(files_, VectorFile::open(files_.vectors).rows());
  const support::Rows rows(support::generate(support::Kind::normal, 100, dim, 3), ElementType::f32);
  VectorWriter writer(files_.vectors, ElementType::f32, dim);
  writer.append(rows);
  writer.commit();
  EXPECT_ERROR(task.work(context_), invalid_argument, "had 20000 x 16 f32, now has 100 x 16 f32");
}

TEST_P(PlanInputTest, AFileThatBecameEmptyIsRefused) {
  VectorWriter(files_.vectors, ElementType::f32, dim).commit();
  EXPECT_ERROR(input(), invalid_argument, "had 20000 x 16 f32, now has 0 x ");
}

TEST_P(PlanInputTest, DamagedChecksumsAreCorrupt) {
  auto bytes = read_all(files_.work / "input.nw");
  bytes[bytes.size() / 2] ^= std::byte{1};
  write_all(files_.work / "input.nw", bytes);
  EXPECT_ERROR(input().all(), corrupt, "input.nw");
}

// A valid file of another plan, which its manifest says is right.
TEST(PlanInput, CodesOfOtherRowsAreCorrupt) {
  const TemporaryFolder folder;
  const Matrix<std::uint8_t> codes(2, 64);
  ContainerWriter writer(folder / "codes.nw", "test");
  writer.write_section("codes", codes.view());
  writer.commit();
  const Context context = Context::cpu();
  const CodeRows two = {.file = folder / "codes.nw", .dim = 60, .rows = 2};
  EXPECT_EQ(PlanInput(context, two).all().rows(), 2U);
  CodeRows more = two;
  more.rows = 700;
  EXPECT_ERROR(PlanInput(context, more), corrupt, "expected 700 rows");
}

TEST_P(PlanInputTest, AStampChangesWithTheFile) {
  const std::string before = stamp_of(files_.vectors);
  EXPECT_EQ(stamp_of(files_.vectors), before);
  change(files_.vectors, offset_of(5));
  EXPECT_NE(stamp_of(files_.vectors), before);  // the time of the change of its times
  EXPECT_EQ(stamp_of(folder_ / "missing"), "");
}

}  // namespace
}  // namespace nearwise::plan
