// Arguments of index build, in memory and over files, and of plan index.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "cli/shared/planned_work.h"
#include "cli/shared/session.h"
#include "cli/shared/work.h"
#include "nearwise/matrix.h"
#include "nearwise/plan.h"

namespace nearwise::cli {

struct IndexBuildArguments {
  std::filesystem::path base;
  std::filesystem::path output;
  WorkArguments work;
  std::string kind = "ivf";
  std::optional<std::size_t> degree;  // of a graph
  std::string codec = "pq";
  Metric metric = Metric::sqeuclidean;
  std::optional<std::size_t> lists;
  std::size_t iterations = 10;
  std::optional<std::size_t> training_rows;
  std::optional<std::size_t> code_bytes;
  std::optional<unsigned> bits;
  VectorStorage vectors = VectorStorage::keep;
  std::optional<std::size_t> probes;    // none: calibrated
  std::optional<double> target_recall;  // none: the library's default of the kind
  std::size_t seed = 0;
  bool train_only = false;
  ContextArguments context;
};

double target_recall_of(const IndexBuildArguments& arguments);

// The base, and all options but --output, --work and --train-only.
void add_index_build_options(CLI::App& parser, IndexBuildArguments& arguments);

// Throws Error(invalid_argument) for options that contradict each other or the vectors, so that whatever the
// library refuses later is the content of a file.
void check_index_build(const Session& session, const IndexBuildArguments& arguments, RowsView base);

IvfOptions index_options(const IndexBuildArguments& arguments);

// The same for --kind graph.
void check_graph_index_build(const Session& session, const IndexBuildArguments& arguments);
GraphIndexOptions graph_index_options(const IndexBuildArguments& arguments);
ExitCode report_graph_index(Session& session, const GraphIndex& index, const std::filesystem::path& output,
                            Json more, double seconds);

// index build --kind graph
ExitCode run_graph_index_build(Session& session, const IndexBuildArguments& arguments);

// index build --work
ExitCode run_planned_index_build(Session& session, const IndexBuildArguments& arguments);

}  // namespace nearwise::cli
