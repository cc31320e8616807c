// What is read off a graph: components, duplicates, mutual neighbours, paths, and the matrix for other
// programs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>

#include "golden_answers/data.h"
#include "golden_answers/golden.h"
#include "io/temporary_folder.h"
#include "nearwise/graph/graph_export.h"
#include "nearwise/graph/graph_structure.h"
#include "nearwise/graph/knn_graph.h"
#include "nearwise/graph/smoothest_path.h"

namespace nearwise::golden {
namespace {

void expect_groups(const std::string& name, const RowGroups& groups) {
  expect(name, [&](Digest& digest) {
    digest.add(groups.labels);
    digest.add(groups.sizes);
  });
}

TEST(GoldenGraphUses, StructureAndPaths) {
  const testing_io::TemporaryFolder folder;
  for (const Metric metric : every_metric) {
    const std::string ending(name(metric));
    const KnnGraph graph =
        build_knn_graph(context(), make_rows(500, 19, 61), {.degree = 4, .metric = metric});
    expect_groups("connected_components." + ending, connected_components(graph));
    expect_groups("near_duplicates." + ending, near_duplicates(graph, graph.neighbors.distances(40, 2)));
    const RangeNeighbors mutual = mutual_neighbors(graph);
    expect_answer("mutual_neighbors." + ending, mutual);
    expect("smoothest_path." + ending, [&](Digest& digest) {
      for (Id end = 0; end < 500; end += 9) {
        const std::optional<SmoothestPath> path = smoothest_path(graph, 3, end);
        digest.add(path.has_value());
        if (!path) continue;
        digest.add(path->rows);
        digest.add(path->distances);
        digest.add(path->widest.value_or(-1));
      }
    });
    save_csr(graph, folder / "graph.npz");
    expect("file.csr.graph." + ending, [&](Digest& digest) { digest.add_file(folder / "graph.npz"); });
    save_csr(mutual, 500, folder / "mutual.npz");
    expect("file.csr.mutual." + ending, [&](Digest& digest) { digest.add_file(folder / "mutual.npz"); });
  }
}

}  // namespace
}  // namespace nearwise::golden
