// What a graph is built from, and how: the same for a build in memory, one over files, and its plan.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <filesystem>
#include <string>

#include "cli/shared/machine_options.h"
#include "cli/shared/session.h"

namespace nearwise::cli {

struct GraphBuildArguments {
  std::filesystem::path base;
  std::filesystem::path output;
  std::filesystem::path work;  // empty: in memory
  bool keep_work = false;
  std::size_t degree = 10;
  std::string metric = "sqeuclidean";
  double recall = 0.95;
  std::string way;  // over files; empty: partitions
  std::size_t seed = 0;
  MachineArguments machine;
};

// base, --degree, --metric, --recall, --way, --seed and those of the machine.
void add_graph_options(CLI::App& command, GraphBuildArguments& arguments);

// graph build with --work: what is done there already is not done again.
ExitCode run_planned_build(Session& session, const GraphBuildArguments& arguments);

}  // namespace nearwise::cli
