// Outputs of commands: checked before the work, with the provenance of the run.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <map>
#include <string>

#include "cli/shared/session.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/types.h"

namespace nearwise::cli {

using Provenance = std::map<std::string, std::string>;

// Command, version and time of this run; commands add their inputs by describe_input().
Provenance describe_run(const Session& session);
std::string describe_input(const std::filesystem::path& path, RowsView rows);

// In the format of the suffix; metric and provenance are kept by .nw only.
void write_result(const std::filesystem::path& path, Metric metric, Provenance provenance,
                  Neighbors neighbors);

// Reports before the work what would fail after it: an output that cannot be created, or is an input.
void check_output(const Session& session, const std::filesystem::path& output,
                  std::initializer_list<std::filesystem::path> inputs);

}  // namespace nearwise::cli
