// Answers of a search, exact or approximate: written to a file, or the first of them printed.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>

#include "cli/shared/files.h"
#include "cli/shared/session.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/recall_estimate.h"

namespace nearwise::cli {

// -o, optional, and --limit-queries.
void add_search_output(CLI::App& parser, std::filesystem::path& output);
CLI::Option* add_limit_queries(CLI::App& parser, std::optional<std::size_t>& limit);

RowsView first_rows_of(RowsView rows, std::optional<std::size_t> limit);

// Reports before the search what would fail after it. `output` may be empty.
void check_search_output(const Session& session, const std::filesystem::path& output,
                         std::initializer_list<std::filesystem::path> inputs);

struct SearchReport {
  std::filesystem::path output;  // empty: the first answers are printed
  Metric metric = Metric::sqeuclidean;
  double seconds = 0;
  std::string searched;  // "1000 vectors"
  Json more;             // added to the JSON
};
ExitCode report_search(const Session& session, const SearchReport& report, Provenance provenance,
                       Neighbors found);

Json to_json(const RecallEstimate& recall);

}  // namespace nearwise::cli
