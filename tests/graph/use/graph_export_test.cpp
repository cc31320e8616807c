// Exported graphs hold every edge at its distance. That SciPy reads them is shown in python/tests and
// tests/cli.
#include "nearwise/graph/graph_export.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "io/temporary_folder.h"
#include "io/vectors/npz_reader.h"
#include "nearwise/graph/graph_structure.h"
#include "support/error_of.h"
#include "support/random_graphs.h"

namespace nearwise {
namespace {

using support::error_of;
using testing_io::read_npz;
using testing_io::TemporaryFolder;

TEST(SaveCsr, HoldsEveryEdgeAndNoPadding) {
  const TemporaryFolder folder;
  // Rows of different islands have different numbers of others.
  const KnnGraph graph = support::random_graph(Metric::inner_product, 11, 4, 3, 2);
  save_csr(graph, folder / "graph.npz");
  const auto arrays = read_npz(folder / "graph.npz");
  ASSERT_EQ(arrays.size(), 5U);
  EXPECT_EQ(arrays.at("shape.npy").as<std::int64_t>(), (std::vector<std::int64_t>{11, 11}));
  EXPECT_EQ(arrays.at("format.npy").header.descr, "|S3");
  EXPECT_EQ(arrays.at("indices.npy").header.descr, "<i4");
  const auto starts = arrays.at("indptr.npy").as<std::int32_t>();
  const auto columns = arrays.at("indices.npy").as<std::int32_t>();
  const auto values = arrays.at("data.npy").as<float>();
  ASSERT_EQ(starts.size(), 12U);
  EXPECT_EQ(arrays.at("data.npy").header.shape, std::vector<std::uint64_t>{columns.size()});
  std::size_t next = 0;
  bool padded = false;
  for (std::size_t row = 0; row < graph.rows(); ++row) {
    EXPECT_EQ(starts[row], static_cast<std::int32_t>(next));
    for (std::size_t i = 0; i < graph.degree(); ++i) {
      padded |= graph.neighbors.ids(row, i) == no_id;
      if (graph.neighbors.ids(row, i) == no_id) continue;
      ASSERT_LT(next, columns.size());
      EXPECT_EQ(columns[next], graph.neighbors.ids(row, i));
      EXPECT_EQ(values[next], graph.neighbors.distances(row, i));
      ++next;
    }
  }
  EXPECT_TRUE(padded);
  EXPECT_EQ(next, columns.size());
  EXPECT_EQ(starts.back(), static_cast<std::int32_t>(next));
}

TEST(SaveCsr, TakesRowsOfDifferentLengths) {
  const TemporaryFolder folder;
  const KnnGraph graph = support::random_graph(Metric::cosine, 20, 3, 1, 5);
  const RangeNeighbors mutual = mutual_neighbors(graph);
  save_csr(mutual, 20, folder / "mutual.npz");
  const auto arrays = read_npz(folder / "mutual.npz");
  EXPECT_EQ(arrays.at("data.npy").as<float>(), mutual.distances);
  const auto starts = arrays.at("indptr.npy").as<std::int32_t>();
  EXPECT_EQ(std::vector<std::size_t>(starts.begin(), starts.end()), mutual.offsets);
  const auto columns = arrays.at("indices.npy").as<std::int32_t>();
  EXPECT_EQ(std::vector<Id>(columns.begin(), columns.end()), mutual.ids);
}

TEST(SaveCsr, RefusesOtherNamesAndWrongRows) {
  const TemporaryFolder folder;
  KnnGraph graph = support::random_graph(Metric::cosine, 20, 3, 1, 5);
  const auto refusal = [&](const auto& call) {
    const Error error = error_of(call);
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return std::string(error.what());
  };
  EXPECT_NE(refusal([&] { save_csr(graph, folder / "graph.nw"); }).find(".npz"), std::string::npos);
  RangeNeighbors mutual = mutual_neighbors(graph);
  EXPECT_NE(refusal([&] { save_csr(mutual, 5, folder / "graph.npz"); }).find("from 0 to 4"),
            std::string::npos);
  mutual.distances.pop_back();
  EXPECT_NE(refusal([&] { save_csr(mutual, 20, folder / "graph.npz"); }).find("offsets"), std::string::npos);
  graph.neighbors.ids(3, 0) = 20;
  EXPECT_NE(refusal([&] { save_csr(graph, folder / "graph.npz"); }).find("got 20 of row 3"),
            std::string::npos);
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace nearwise
