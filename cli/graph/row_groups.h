// Groups of vectors, found by graph components and graph duplicates: printed, and written as labels.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>

#include "cli/shared/session.h"
#include "nearwise/graph_structure.h"

namespace nearwise::cli {

// .npy, .ivecs or .ibin; -o is optional.
void add_labels_output(CLI::App& parser, std::filesystem::path& output);
void check_labels_output(const Session& session, const std::filesystem::path& output,
                         const std::filesystem::path& graph);

// `noun` names the groups; `more` is added to the JSON.
ExitCode report_groups(const Session& session, const KnnGraph& graph, const RowGroups& groups,
                       const std::filesystem::path& output, const std::string& noun, const Json& more);

}  // namespace nearwise::cli
