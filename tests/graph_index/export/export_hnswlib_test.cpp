// The layout of exported files; python/tests and bench/rivals load them with hnswlib itself.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "io/temporary_folder.h"
#include "nearwise/graph_index_export.h"
#include "support/ivf_cases.h"

namespace nearwise {
namespace {

TEST(ExportHnswlib, EveryElementHasItsEdgesVectorAndLabel) {
  const support::Problem problem = support::clustered(500, 1, 6, 81);
  std::vector<Id> ids(500);
  for (std::size_t row = 0; row < 500; ++row) ids[row] = static_cast<Id>(2 * row);
  const GraphIndex index =
      GraphIndex::build(support::one_thread(), problem.base, {.degree = 16, .ids = ids}, std::nullopt);
  const testing_io::TemporaryFolder folder;
  const std::filesystem::path path = folder / "index.hnsw";
  export_hnswlib(support::one_thread(), index, path);
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto at = [&](std::size_t offset, auto value) {
    std::memcpy(&value, bytes.data() + offset, sizeof(value));
    return value;
  };
  constexpr std::size_t element = 16 * 4 + 4 + 6 * 4 + 8;
  constexpr std::size_t header = 6 * 8 + 8 + 3 * 8 + 8 + 8;
  EXPECT_EQ(at(8, std::uint64_t{}), 500U);
  EXPECT_EQ(at(24, std::uint64_t{}), element);
  for (std::size_t row = 0; row < 500; ++row) {
    const std::size_t begin = header + row * element;
    const std::size_t count = at(begin, std::uint16_t{});
    for (std::size_t i = 0; i < 16; ++i)
      if (index.edges()(row, i) >= 0) {
        ASSERT_LT(i, count);
        EXPECT_EQ(at(begin + 4 + 4 * i, std::int32_t{}), index.edges()(row, i));
      } else {
        ASSERT_GE(i, count);
      }
    const auto* const vector = reinterpret_cast<const float*>(static_cast<RowsView>(problem.base).row(row));
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(at(begin + 68 + 4 * i, float{}), vector[i]);
    EXPECT_EQ(at(begin + element - 8, std::uint64_t{}), 2 * row);
  }
  // Lists of the level above: of every entry, and of no other row.
  std::size_t offset = header + 500 * element;
  std::size_t upper = 0;
  for (std::size_t row = 0; row < 500; ++row) {
    const auto size = at(offset, std::uint32_t{});
    offset += 4 + size;
    upper += size != 0 ? 1 : 0;
  }
  EXPECT_EQ(offset, bytes.size());
  EXPECT_EQ(upper, index.entries());
}

}  // namespace
}  // namespace nearwise
