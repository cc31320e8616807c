// What graph merge, add and remove share: the files of vectors, the options, and the run.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cli/graph/graph_file.h"
#include "cli/shared/context_options.h"
#include "cli/shared/session.h"
#include "nearwise/vector_file.h"

namespace nearwise::cli {

struct GraphUpdateArguments {
  std::vector<std::filesystem::path> vectors;  // concatenated
  std::filesystem::path output;
  double target_recall = 0.95;
  std::size_t seed = 0;
  ContextArguments context;
};

// The files of vectors, as the last positional, and the options.
void add_graph_update_options(CLI::App& parser, GraphUpdateArguments& arguments,
                              const std::string& vectors_description);

// The vectors of several files: one file is mapped, several are concatenated in memory.
class ConcatenatedVectors {
 public:
  ConcatenatedVectors(const Session& session, const std::vector<std::filesystem::path>& paths);

  RowsView rows() const { return rows_; }
  std::string describe() const;

 private:
  std::vector<VectorFile> files_;
  Matrix<std::byte> copy_;
  RowsView rows_;
};

using GraphUpdate = std::function<KnnGraph(const Context&, RowsView, const KnnGraphChangeOptions&)>;
// Opens the vectors, checks their number (at least `expected`, or exactly), updates, and writes the graph.
// The output may be an input graph.
struct ExpectedVectors {
  std::size_t count = 0;
  bool or_more = false;
};
ExitCode run_graph_update(Session& session, const GraphUpdateArguments& arguments, ExpectedVectors expected,
                          const GraphUpdate& update);

}  // namespace nearwise::cli
