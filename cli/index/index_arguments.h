// What an index is built from, and how: the same for a build in memory, one over files, and its plan.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

#include "cli/shared/machine_options.h"
#include "cli/shared/session.h"
#include "nearwise/matrix.h"

namespace nearwise::cli {

struct IndexBuildArguments {
  std::filesystem::path base;
  std::filesystem::path output;
  std::filesystem::path work;  // empty: in memory
  bool keep_work = false;
  std::string codec = "pq";
  std::string metric = "sqeuclidean";
  std::size_t lists = 0;
  std::size_t iterations = 10;
  std::size_t rows_per_list = 256;
  std::size_t code_bytes = 0;
  std::size_t bits = 8;
  std::size_t probes = 0;  // 0: measured
  double recall = 0.9;
  std::size_t seed = 0;
  bool train_only = false;
  MachineArguments machine;
};

// base, those of lists, codes and probes, --seed and those of the machine. Returns what checks them once they are there.
std::function<void()> add_index_options(CLI::App& command, IndexBuildArguments& arguments);

// Mistakes in the arguments are told here, so that what the library itself refuses as invalid is the content of a file.
void check_index_arguments(const IndexBuildArguments& arguments, RowsView base);

// build with --work: what is done there already is not done again.
ExitCode run_planned_build(Session& session, const IndexBuildArguments& arguments);

// nearwise plan index
void add_plan_of_index(CLI::App& plan, Session& session);

}  // namespace nearwise::cli
