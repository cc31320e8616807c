// Arguments of graph build, in memory and over files, and of plan graph.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <filesystem>
#include <optional>

#include "cli/shared/context_options.h"
#include "cli/shared/planned_work.h"
#include "cli/shared/session.h"
#include "nearwise/plan.h"

namespace nearwise::cli {

struct GraphBuildArguments {
  std::filesystem::path base;
  std::filesystem::path output;
  WorkArguments work;
  std::size_t degree = 10;
  Metric metric = Metric::sqeuclidean;
  double target_recall = 0.95;
  std::optional<GraphPlanMethod> method;  // of a build over files; none: partitions
  std::size_t seed = 0;
  ContextArguments context;
};

// The base, and all options but --output and --work.
void add_graph_build_options(CLI::App& parser, GraphBuildArguments& arguments);

// graph build --work
ExitCode run_planned_graph_build(Session& session, const GraphBuildArguments& arguments);

}  // namespace nearwise::cli
