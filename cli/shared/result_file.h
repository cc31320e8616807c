// Neighbours as a command leaves them: in the format of the suffix, and in a container with where they came from.
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

// Command, version and time of this run; inputs are added by describe_input().
Provenance describe_run(const Session& session);
std::string describe_input(const std::filesystem::path& path, RowsView rows);

// The metric and the provenance go into a container only.
void write_result(const std::filesystem::path& path, Metric metric, Provenance provenance,
                  Neighbors neighbors);

// What can be known to fail is told before the work, not after it: a name that cannot be created, or is an input's.
void check_output(const std::string& command, const std::filesystem::path& output,
                  std::initializer_list<std::filesystem::path> inputs);

// The first rows, where no file is written: for people, and for programs. Infinite distances, of padded places, are null
// in JSON, which has no infinity.
std::string preview_of(const Neighbors& found);
Json first_rows(const Neighbors& found);

}  // namespace nearwise::cli
