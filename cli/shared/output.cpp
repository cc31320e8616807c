#include "cli/shared/output.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "cli/shared/files.h"
#include "cli/shared/text.h"
#include "nearwise/machine.h"
#include "nearwise/storage.h"
#include "nearwise/vector_file.h"

namespace nearwise::cli {

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

void check_output(const Session& session, const std::filesystem::path& output,
                  std::initializer_list<std::filesystem::path> inputs) {
  require_creatable(output);
  for (const std::filesystem::path& input : inputs) {
    std::error_code missing;
    if (std::filesystem::equivalent(input, output, missing))
      refuse(session, "the output '{}' would replace an input", output.string());
  }
}

}  // namespace nearwise::cli
