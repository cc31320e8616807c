#include "cli/shared/result_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <system_error>
#include <utility>

#include "cli/shared/files.h"
#include "cli/shared/text.h"
#include "nearwise/machine.h"
#include "nearwise/storage.h"
#include "nearwise/vector_file.h"

namespace nearwise::cli {
namespace {

constexpr std::size_t preview_rows = 5;
constexpr std::size_t preview_columns = 5;

}  // namespace

Provenance describe_run(const Session& session) {
  std::string command = "nearwise";
  for (const std::string& argument : session.arguments) command += " " + quote(argument);
  return {{"command", command}, {"time", time_of_run()}, {"version", "nearwise " + version()}};
}

std::string describe_input(const std::filesystem::path& path, RowsView rows) {
  return fmt::format("{}, {} bytes, {} x {} {}", path.string(), std::filesystem::file_size(path), rows.rows(),
                     rows.dim(), name(rows.type()));
}

void write_result(const std::filesystem::path& path, Metric metric, Provenance provenance,
                  Neighbors neighbors) {
  if (!is_container(path)) return write_neighbors(path, neighbors);
  save({.neighbors = std::move(neighbors), .metric = metric, .provenance = std::move(provenance)}, path);
}

void check_output(const std::string& command, const std::filesystem::path& output,
                  std::initializer_list<std::filesystem::path> inputs) {
  require_creatable(output);
  for (const std::filesystem::path& input : inputs) {
    std::error_code missing;
    if (std::filesystem::equivalent(input, output, missing))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: the output '{}' would replace an input", command, output.string()));
  }
}

std::string preview_of(const Neighbors& found) {
  std::string text;
  const std::size_t columns = std::min(preview_columns, found.ids.cols());
  for (std::size_t row = 0; row < std::min(preview_rows, found.ids.rows()); ++row) {
    text += fmt::format("query {}:", row);
    for (std::size_t column = 0; column < columns; ++column)
      text += fmt::format("  {} ({:.6g})", found.ids(row, column), found.distances(row, column));
    text += columns < found.ids.cols() ? "  ...\n" : "\n";
  }
  if (found.ids.rows() > preview_rows)
    text += fmt::format("... {} more; --output FILE keeps all\n", found.ids.rows() - preview_rows);
  return text;
}

Json first_rows(const Neighbors& found) {
  Json rows = Json::array();
  for (std::size_t row = 0; row < std::min(preview_rows, found.ids.rows()); ++row)
    rows.push_back({{"ids", found.ids.row(row)}, {"distances", found.distances.row(row)}});
  return rows;
}

}  // namespace nearwise::cli
