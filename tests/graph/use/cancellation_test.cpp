// CancellationScope: functions on whole graphs stop, at any moment, and leave no file behind.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "io/expect_error.h"
#include "io/temporary_folder.h"
#include "nearwise/context.h"
#include "nearwise/graph/graph_export.h"
#include "nearwise/graph/graph_structure.h"
#include "nearwise/graph/smoothest_path.h"
#include "support/error_of.h"

namespace nearwise {
namespace {

using testing_io::TemporaryFolder;

// Any neighbours; the next row is one of them, so that all rows are connected.
KnnGraph graph_of_any(std::size_t rows, std::size_t degree) {
  KnnGraph graph;
  graph.neighbors = {Matrix<Id>(rows, degree), Matrix<float>(rows, degree)};
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t i = 0; i < degree; ++i) {
      graph.neighbors.ids(row, i) = static_cast<Id>((row + 1 + i * (row * 7'919 + 104'729)) % rows);
      graph.neighbors.distances(row, i) = static_cast<float>(i);
    }
  return graph;
}

std::vector<std::function<void()>> functions_on(const KnnGraph& graph, const TemporaryFolder& folder) {
  return {[&] { connected_components(graph); },
          [&] { near_duplicates(graph, 2); },
          [&] { mutual_neighbors(graph); },
          [&] { smoothest_path(graph, 0, static_cast<Id>(graph.rows()) - 1); },
          [&] { save_csr(graph, folder / "graph.npz"); },
          [&] { save_csr(mutual_neighbors(graph), graph.rows(), folder / "graph.npz"); }};
}

TEST(CancellationScopeOfGraphs, StopsFunctionsOnGraphs) {
  const TemporaryFolder folder;
  const KnnGraph graph = graph_of_any(50, 3);
  const RangeNeighbors mutual = mutual_neighbors(graph);
  const Context cancelled = Context::cpu();
  cancelled.cancel();
  const CancellationScope scope(cancelled);
  for (const auto& function : functions_on(graph, folder)) EXPECT_ERROR(function(), cancelled, "cancelled");
  EXPECT_ERROR(save_csr(mutual, 50, folder / "graph.npz"), cancelled, "cancelled");
  EXPECT_TRUE(folder.names().empty());
}

TEST(CancellationScopeOfGraphs, ThreadsMayCancelAtAnyMoment) {
  using Clock = std::chrono::steady_clock;
  constexpr int moments = 8;
  const TemporaryFolder folder;
  const KnnGraph graph = graph_of_any(60'000, 12);
  for (const auto& function : functions_on(graph, folder)) {
    const auto began = Clock::now();
    function();
    const auto duration = Clock::now() - began;
    for (const std::string& name : folder.names()) std::filesystem::remove(folder / name);
    int cancelled = 0;
    for (int moment = 0; moment < moments; ++moment) {
      const Context context = Context::cpu({.threads = 1});
      std::atomic<bool> has_begun = false;
      std::jthread canceller([&] {
        while (!has_begun) std::this_thread::yield();
        std::this_thread::sleep_for(duration * moment / moments);
        context.cancel();
      });
      const CancellationScope scope(context);
      has_begun = true;
      const Error error = support::error_of(function);
      if (error.code() != ErrorCode::cancelled) {
        EXPECT_STREQ(error.what(), "");  // it was done before
        for (const std::string& name : folder.names()) std::filesystem::remove(folder / name);
      } else {
        ++cancelled;
        EXPECT_TRUE(folder.names().empty());
      }
    }
    EXPECT_GE(cancelled, 1);
  }
}

}  // namespace
}  // namespace nearwise
