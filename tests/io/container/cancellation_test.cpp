// CancellationScope: functions on files stop, and leave nothing behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "io/expect_error.h"
#include "io/temporary_folder.h"
#include "nearwise/context.h"
#include "nearwise/graph/knn_graph.h"
#include "nearwise/storage.h"
#include "nearwise/vector_file.h"

namespace nearwise {
namespace {

using testing_io::TemporaryFolder;

SavedNeighbors neighbors_of(std::size_t rows) {
  SavedNeighbors saved;
  saved.neighbors.ids = Matrix<Id>(rows, 4);
  saved.neighbors.distances = Matrix<float>(rows, 4);
  for (std::size_t i = 0; i < rows * 4; ++i) {
    saved.neighbors.ids.data()[i] = static_cast<Id>(i);
    saved.neighbors.distances.data()[i] = static_cast<float>(i);
  }
  return saved;
}

TEST(CancellationScope, StopsFunctionsOnFiles) {
  const TemporaryFolder folder;
  const SavedNeighbors saved = neighbors_of(100'000);
  save(saved, folder / "saved.nw");
  write_neighbors(folder / "saved.npy", saved.neighbors);
  write_neighbors(folder / "saved.bin", saved.neighbors);
  const Context cancelled = Context::cpu();
  cancelled.cancel();
  {
    const CancellationScope scope(cancelled);
    EXPECT_ERROR(save(saved, folder / "new.nw"), cancelled, "cancelled");
    EXPECT_ERROR(save(saved, folder / "saved.nw"), cancelled, "cancelled");
    EXPECT_ERROR(load_neighbors(folder / "saved.nw"), cancelled, "cancelled");
    EXPECT_ERROR(verify(folder / "saved.nw"), cancelled, "cancelled");
    EXPECT_ERROR(write_neighbors(folder / "new.npy", saved.neighbors), cancelled, "cancelled");
    EXPECT_ERROR(read_neighbors(folder / "saved.npy"), cancelled, "cancelled");
    EXPECT_ERROR(read_neighbors(folder / "saved.bin"), cancelled, "cancelled");
    {
      const CancellationScope inner(Context::cpu());
      EXPECT_EQ(load_neighbors(folder / "saved.nw").neighbors.ids.rows(), 100'000U);
    }
    EXPECT_ERROR(verify(folder / "saved.nw"), cancelled, "cancelled");
  }
  std::vector<std::string> names = folder.names();
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"saved.bin", "saved.npy", "saved.nw"}));
  EXPECT_EQ(load_neighbors(folder / "saved.nw").neighbors.ids(99'999, 3), 399'999);
}

TEST(CancellationScope, ACancelledGraphIsNotCalledCorrupt) {
  const TemporaryFolder folder;
  KnnGraph graph;
  graph.neighbors.ids = Matrix<Id>(2, 1);
  graph.neighbors.distances = Matrix<float>(2, 1);
  for (std::size_t row = 0; row < 2; ++row) {
    graph.neighbors.ids(row, 0) = static_cast<Id>(1 - row);
    graph.neighbors.distances(row, 0) = 1;
  }
  save(graph, folder / "graph.nw");
  const Context cancelled = Context::cpu();
  cancelled.cancel();
  const CancellationScope scope(cancelled);
  EXPECT_ERROR(graph.validate(), cancelled, "cancelled");
  EXPECT_ERROR(save(graph, folder / "other.nw"), cancelled, "cancelled");
  EXPECT_ERROR(load_knn_graph(folder / "graph.nw"), cancelled, "cancelled");
}

}  // namespace
}  // namespace nearwise
