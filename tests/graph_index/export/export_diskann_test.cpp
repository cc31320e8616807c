// The layout of exported files; bench/rivals/graph_export_diskann.py loads them with DiskANN itself.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "io/temporary_folder.h"
#include "nearwise/graph_index_export.h"
#include "support/error_of.h"
#include "support/ivf_cases.h"

namespace nearwise {
namespace {

class ExportDiskann : public testing::Test {
 protected:
  GraphIndex build(Metric metric) const {
    return GraphIndex::build(support::one_thread(), problem_.base, {.metric = metric, .degree = 16},
                             std::nullopt);
  }
  template <typename T>
  std::vector<T> elements(const char* name) const {
    const std::vector<std::byte> bytes = testing_io::read_all(folder_ / "made" / name);
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
  }
  void write(const GraphIndex& index) const {
    export_diskann(support::one_thread(), index, folder_ / "made");
  }

  const support::Problem problem_ = support::clustered(500, 1, 6, 81);
  const testing_io::TemporaryFolder folder_;
};

TEST_F(ExportDiskann, ListsFollowTheHeader) {
  const GraphIndex index = build(Metric::sqeuclidean);
  write(index);
  const auto words = elements<std::uint32_t>("ann");
  EXPECT_EQ(words[0], 4 * words.size());
  EXPECT_EQ(words[1], 0U);
  EXPECT_LT(words[3], 500U);
  EXPECT_EQ(words[4], 0U);
  std::size_t next = 6;
  std::uint32_t longest = 0;
  for (std::size_t row = 0; row < 500; ++row) {
    const std::uint32_t count = words[next++];
    longest = std::max(longest, count);
    for (std::size_t i = 0; i < 16; ++i) {
      const std::int32_t edge = index.edges()(row, i);
      ASSERT_EQ(edge >= 0, i < count);
      if (i < count) {
        ASSERT_EQ(words[next++], static_cast<std::uint32_t>(edge));
      }
    }
  }
  EXPECT_EQ(next, words.size());
  EXPECT_EQ(words[2], longest);
}

TEST_F(ExportDiskann, PropertiesNameMetricAndShape) {
  for (const auto& [metric, number] : {std::pair(Metric::cosine, 0U), std::pair(Metric::inner_product, 1U)}) {
    write(build(metric));
    EXPECT_EQ(elements<std::uint64_t>("ann_metadata.bin"), (std::vector<std::uint64_t>{0, number, 500, 6}));
    EXPECT_EQ(elements<std::uint32_t>("ann.data")[0], 500U);
    EXPECT_EQ(elements<std::uint32_t>("ann.data")[1], 6U);
  }
}

TEST_F(ExportDiskann, VectorsOfCosineHaveLengthOne) {
  write(build(Metric::cosine));
  const auto values = elements<float>("ann.data");
  ASSERT_EQ(values.size(), 2 + 500 * 6);
  for (std::size_t row = 0; row < 500; ++row) {
    double squares = 0;
    for (std::size_t i = 0; i < 6; ++i)
      squares += static_cast<double>(values[2 + row * 6 + i]) * values[2 + row * 6 + i];
    EXPECT_NEAR(squares, 1, 1e-6);
  }
}

TEST_F(ExportDiskann, AChangedGraphIsCompactedFirst) {
  GraphIndex index = build(Metric::sqeuclidean);
  ASSERT_EQ(index.remove(support::one_thread(), std::vector<Id>{7}), 1U);
  const Error error = support::error_of([&] { write(index); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_NE(std::string(error.what()).find("compact()"), std::string::npos) << error.what();
  index.compact(support::one_thread());
  write(index);
  EXPECT_EQ(elements<std::uint32_t>("ann.data")[0], 499U);
}

}  // namespace
}  // namespace nearwise
