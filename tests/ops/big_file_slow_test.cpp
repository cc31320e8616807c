// A base of more than 2^31 rows, mapped from a file that is mostly a hole.
//
// Would catch: row numbers or byte offsets in 32 bits, signed or not, anywhere between the file and the
// answer, and a memory limit that is not kept for files larger than memory.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "nearwise/exact.h"
#include "nearwise/vector_file.h"
#include "oracle/knn.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

constexpr std::uint32_t rows = (1U << 31) + 1000;
constexpr std::uint32_t dim = 4;
constexpr std::uint64_t header_bytes = 8;
using Row = std::array<std::uint8_t, dim>;

// A .u8bin file of zeros with a few rows written; removed with the object.
class SparseFile {
 public:
  explicit SparseFile(const std::map<Id, Row>& planted)
      : path_(std::filesystem::path(testing::TempDir()) /
              ("nearwise_big_file_" + std::to_string(::getpid()) + ".u8bin")) {
    const int file = ::open(path_.c_str(), O_CREAT | O_TRUNC | O_RDWR, 0600);
    if (file < 0) return;
    const std::array<std::uint32_t, 2> header = {rows, dim};
    made_ = ::ftruncate(file, static_cast<off_t>(header_bytes + std::uint64_t{rows} * dim)) == 0 &&
            ::pwrite(file, header.data(), header_bytes, 0) == static_cast<ssize_t>(header_bytes);
    for (const auto& [id, row] : planted)
      made_ = made_ && ::pwrite(file, row.data(), dim,
                                static_cast<off_t>(header_bytes + static_cast<std::uint64_t>(id) * dim)) ==
                           static_cast<ssize_t>(dim);
    made_ = ::close(file) == 0 && made_;
  }
  ~SparseFile() { std::filesystem::remove(path_); }
  SparseFile(const SparseFile&) = delete;
  SparseFile& operator=(const SparseFile&) = delete;
  bool made() const { return made_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  bool made_ = false;
};

// The oracle over the planted rows and the first zero rows: no other zero row can be among the best k, since
// all zero rows tie and the lower id wins.
oracle::Answer expected_answer(const std::map<Id, Row>& planted, const std::vector<Row>& queries,
                               std::size_t k, Metric metric) {
  std::map<Id, Row> candidates = planted;
  for (Id id = 0; id < static_cast<Id>(k); ++id) candidates.try_emplace(id, Row{});
  std::vector<Id> ids;
  std::vector<Row> values;
  for (const auto& [id, row] : candidates) {
    ids.push_back(id);
    values.push_back(row);
  }
  oracle::Answer answer =
      oracle::knn(RowsView(queries.data(), ElementType::u8, queries.size(), dim, dim),
                  RowsView(values.data(), ElementType::u8, values.size(), dim, dim), k, metric);
  for (Id& id : answer.ids) id = ids[static_cast<std::size_t>(id)];
  return answer;
}

// One query, or several: each may have a way of its own through the rows.
class BigFile : public testing::TestWithParam<std::size_t> {};

INSTANTIATE_TEST_SUITE_P(Queries, BigFile, testing::Values(1, 18));

// Winners around 2^31 and at the ends. Decent rows every 2^24 give every query a threshold soon, wherever a
// thread begins, so that two thousand million zero rows are scanned and not evaluated.
std::map<Id, Row> planted_rows(const std::vector<Row>& queries) {
  constexpr Id edge = Id{1} << 31;
  std::map<Id, Row> planted = {{3, {100, 100, 100, 100}},          {1'000'000, {100, 100, 100, 101}},
                               {edge - 1, {100, 100, 100, 102}},   {edge, {100, 100, 100, 102}},
                               {edge + 1, {200, 10, 0, 255}},      {edge + 500, {200, 10, 1, 255}},
                               {edge + 998, {100, 100, 100, 100}}, {edge + 999, {200, 10, 0, 254}},
                               {Id{1} << 30, {200, 10, 3, 255}},   {(Id{1} << 29) * 3, {200, 12, 0, 255}}};
  for (Id next = 600; next < edge; next += Id{1} << 24)
    for (std::size_t i = 0; i < 25; ++i) {
      Row row = queries[i % queries.size()];
      row[0] = static_cast<std::uint8_t>(row[0] - 20 - i);
      planted[next + static_cast<Id>(i)] = row;
    }
  return planted;
}

TEST_P(BigFile, IdsBeyondTwoToThe31) {
  constexpr std::size_t k = 5;
  constexpr std::uint64_t limit = 256ULL << 20;
  const std::vector<Row> all = {
      {100, 100, 100, 100}, {200, 10, 0, 255}, {255, 255, 255, 255}, {101, 100, 100, 102}, {200, 11, 2, 255}};
  std::vector<Row> queries;
  for (std::size_t i = 0; i < GetParam(); ++i) queries.push_back(all[i % all.size()]);
  const std::map<Id, Row> planted = planted_rows(queries);
  const SparseFile file(planted);
  ASSERT_TRUE(file.made()) << file.path() << ": " << std::strerror(errno);
  const VectorFile opened = VectorFile::open(file.path());
  // The mapping lives on without the name, and nothing is left behind if this process is killed.
  std::filesystem::remove(file.path());
  ASSERT_EQ(opened.rows().rows(), rows);
  ASSERT_EQ(opened.rows().dim(), dim);
  ASSERT_EQ(opened.rows().type(), ElementType::u8);

  const Context context = Context::cpu({.memory_limit = limit});
  const RowsView query_rows(queries.data(), ElementType::u8, queries.size(), dim, dim);
  EXPECT_TRUE(support::same(expected_answer(planted, queries, k, Metric::sqeuclidean),
                            knn(context, query_rows, opened.rows(), k)));
  EXPECT_LE(context.memory_peak(), limit);
}

}  // namespace
}  // namespace nearwise
