// Saved graphs: they come back as they were, and no damage goes unnoticed.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/changed_bytes.h"
#include "io/changed_metadata.h"
#include "io/expect_error.h"
#include "io/temporary_folder.h"
#include "nearwise/storage.h"
#include "support/error_of.h"
#include "support/graph_cases.h"

namespace nearwise {
namespace {

using support::error_of;
using support::Kind;
using support::Rows;
using testing_io::TemporaryFolder;

KnnGraph some_graph() {
  const Rows rows(support::generate(Kind::normal, 700, 8, 1), ElementType::f32);
  graph::Tuning tuning = support::small_partitions(6);
  tuning.overlap = 1;
  return graph::build(Context::cpu({.threads = 1}), rows,
                      {.degree = 6, .metric = Metric::cosine, .target_recall = 0.97}, tuning);
}

TEST(GraphFile, ComesBackAsItWas) {
  const TemporaryFolder folder;
  const KnnGraph graph = some_graph();
  ASSERT_GE(graph.report.rounds.size(), 2U);
  save(graph, folder / "graph.nw", {{"base", "seven hundred rows"}});
  const KnnGraph loaded = load_knn_graph(folder / "graph.nw");
  EXPECT_TRUE(support::same_bytes(graph.neighbors, loaded.neighbors));
  EXPECT_EQ(loaded.metric, Metric::cosine);
  EXPECT_EQ(loaded.report.method, graph.report.method);
  EXPECT_EQ(loaded.report.reached, graph.report.reached);
  EXPECT_EQ(loaded.report.recall.low, graph.report.recall.low);
  EXPECT_EQ(loaded.report.recall.rows, graph.report.recall.rows);
  ASSERT_EQ(loaded.report.rounds.size(), graph.report.rounds.size());
  EXPECT_EQ(loaded.report.rounds[1].updates, graph.report.rounds[1].updates);
  EXPECT_EQ(loaded.report.rounds[1].recall.value, graph.report.rounds[1].recall.value);
  const ContainerInfo info = inspect(folder / "graph.nw");
  EXPECT_EQ(info.kind, "graph");
  EXPECT_EQ(info.metadata.at("provenance.base"), "seven hundred rows");
  save(loaded, folder / "again.nw", {{"base", "seven hundred rows"}});
  EXPECT_EQ(testing_io::read_all(folder / "graph.nw"), testing_io::read_all(folder / "again.nw"));
}

TEST(GraphFile, IsNotWrittenWhereTheGraphBreaksItsContract) {
  const TemporaryFolder folder;
  KnnGraph graph = some_graph();
  graph.neighbors.ids(3, 1) = 3;
  const Error error = error_of([&] { save(graph, folder / "graph.nw"); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_NE(std::string(error.what()).find("row 3"), std::string::npos) << error.what();
  EXPECT_FALSE(std::filesystem::exists(folder / "graph.nw"));
  EXPECT_EQ(error_of([&] { save(KnnGraph{}, folder / "graph.nw"); }).code(), ErrorCode::invalid_argument);
}

// Would catch: a number of the report that no graph of these rows has.
TEST(GraphFile, NumbersOfTheReportAreBounded) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "graph.nw";
  save(some_graph(), path);
  testing_io::expect_bound(path, "/recall/rows", 700, load_knn_graph);
  testing_io::expect_bound(path, "/rounds/1/recall/rows", 700, load_knn_graph);
  testing_io::expect_bound(path, "/rounds/0/updates", 2 * 700 * 700, load_knn_graph);

  nlohmann::json metadata = testing_io::metadata_of(path);
  const nlohmann::json all = {{"value", 1}, {"low", 1}, {"high", 1}, {"rows", 700}};
  const nlohmann::json round = {{"updates", 0}, {"recall", all}};
  metadata["rounds"] = std::vector<nlohmann::json>(4096, round);
  testing_io::copy_with_metadata(path, folder / "rounds.nw", metadata);
  EXPECT_EQ(load_knn_graph(folder / "rounds.nw").report.rounds.size(), 4096U);
  metadata["rounds"].push_back(round);
  testing_io::copy_with_metadata(path, folder / "rounds.nw", metadata);
  EXPECT_ERROR(load_knn_graph(folder / "rounds.nw"), corrupt, "at most 4096 rounds expected, 4097 found");
}

// What is saved can be loaded.
TEST(GraphFile, IsNotWrittenWithAReportOfAnotherGraph) {
  const TemporaryFolder folder;
  KnnGraph graph = some_graph();
  graph.report.recall.rows = 701;
  EXPECT_ERROR(save(graph, folder / "graph.nw"), invalid_argument, "report: a sample of at most 700 rows");
  EXPECT_FALSE(std::filesystem::exists(folder / "graph.nw"));
}

TEST(GraphFile, AnotherKindIsRefused) {
  const TemporaryFolder folder;
  save(SavedNeighbors{some_graph().neighbors, Metric::cosine, {}}, folder / "neighbors.nw");
  EXPECT_EQ(error_of([&] { load_knn_graph(folder / "neighbors.nw"); }).code(), ErrorCode::invalid_argument);
}

// With and without right checksums.
TEST(GraphFile, ChangedBytesAreFoundOrHarmless) {
  const TemporaryFolder folder;
  save(some_graph(), folder / "graph.nw");
  testing_io::expect_changes_found_or_harmless(
      folder / "graph.nw", 211, [](const std::filesystem::path& path) { load_knn_graph(path).validate(); });
}

}  // namespace
}  // namespace nearwise
