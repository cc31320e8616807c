// The layout of exported files; bench/rivals/graph_export.py loads them with SVS itself.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "io/temporary_folder.h"
#include "nearwise/graph_index_export.h"
#include "nearwise/vector_file.h"
#include "support/error_of.h"
#include "support/ivf_cases.h"

namespace nearwise {
namespace {

namespace fs = std::filesystem;

GraphIndex made(const support::Problem& problem, Metric metric) {
  return GraphIndex::build(support::one_thread(), problem.base, {.metric = metric, .degree = 16},
                           std::nullopt);
}

std::string text_of(const fs::path& path) {
  const std::vector<std::byte> bytes = testing_io::read_all(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(ExportSvs, ListsOfEdgesFollowTheHeader) {
  const support::Problem problem = support::clustered(500, 1, 6, 81);
  const GraphIndex index = made(problem, Metric::sqeuclidean);
  const testing_io::TemporaryFolder folder;
  export_svs(support::one_thread(), index, folder / "svs");
  const std::vector<std::byte> bytes = testing_io::read_all(folder / "svs/graph/graph_0.svs");
  ASSERT_EQ(bytes.size(), 1024 + 500 * 17 * sizeof(std::uint32_t));
  const auto at = [&](std::size_t offset, auto value) {
    std::memcpy(&value, bytes.data() + offset, sizeof(value));
    return value;
  };
  EXPECT_EQ(at(24, std::uint64_t{}), 500U);
  EXPECT_EQ(at(32, std::uint64_t{}), 17U);
  for (std::size_t row = 0; row < 500; ++row) {
    const std::size_t begin = 1024 + row * 17 * sizeof(std::uint32_t);
    const auto count = at(begin, std::uint32_t{});
    for (std::size_t i = 0; i < 16; ++i) {
      const std::int32_t edge = index.edges()(row, i);
      EXPECT_EQ(edge >= 0, i < count);
      EXPECT_EQ(at(begin + 4 + 4 * i, std::int32_t{}), edge >= 0 ? edge : 0);
    }
  }
  const std::string graph = text_of(folder / "svs/graph/svs_config.toml");
  EXPECT_NE(graph.find("max_degree = 16\n"), std::string::npos) << graph;
  EXPECT_NE(graph.find("num_vertices = 500\n"), std::string::npos) << graph;
  // The id of the header, whose bytes are in reverse.
  std::string uuid;
  for (std::size_t i = 0; i < 16; ++i) {
    constexpr const char* digits = "0123456789abcdef";
    const auto byte = std::to_integer<unsigned>(bytes[8 + 15 - i]);
    uuid += digits[byte / 16];
    uuid += digits[byte % 16];
    if (i == 3 || i == 5 || i == 7 || i == 9) uuid += '-';
  }
  EXPECT_NE(graph.find("uuid = '" + uuid + "'"), std::string::npos) << graph << uuid;
}

TEST(ExportSvs, VectorsOfCosineHaveLengthOne) {
  const support::Problem problem = support::clustered(300, 1, 6, 82);
  const testing_io::TemporaryFolder folder;
  export_svs(support::one_thread(), made(problem, Metric::cosine), folder / "svs");
  const VectorFile vectors = VectorFile::open(folder / "svs/vectors.fvecs");
  ASSERT_EQ(vectors.rows().rows(), 300U);
  for (std::size_t row = 0; row < 300; ++row) {
    double squares = 0;
    for (std::size_t i = 0; i < 6; ++i) {
      float element = 0;
      std::memcpy(&element, vectors.rows().row(row) + i * sizeof(element), sizeof(element));
      squares += static_cast<double>(element) * element;
    }
    EXPECT_NEAR(squares, 1, 1e-6);
  }
}

TEST(ExportSvs, SaysWhereItCannotWrite) {
  const support::Problem problem = support::clustered(300, 1, 6, 82);
  const testing_io::TemporaryFolder folder;
  testing_io::write_all(folder / "file", std::string("x"));
  const Error error = support::error_of(
      [&] { export_svs(support::one_thread(), made(problem, Metric::sqeuclidean), folder / "file"); });
  EXPECT_EQ(error.code(), ErrorCode::cannot_create);
  EXPECT_NE(std::string(error.what()).find("file/config"), std::string::npos) << error.what();
}

}  // namespace
}  // namespace nearwise
