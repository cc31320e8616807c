#include "cli/shared/filter_file.h"

#include <optional>
#include <vector>

#include "cli/shared/command.h"
#include "cli/shared/files.h"
#include "nearwise/vector_file.h"

namespace nearwise::cli {
namespace {

// A boolean array by id; none: the file has ids.
std::optional<std::vector<std::uint8_t>> read_mask_if_any(const std::filesystem::path& path) {
  if (!holds_npy(path)) return std::nullopt;
  try {
    return read_mask(path);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    return std::nullopt;  // not a boolean array
  }
}

Filter read_allowed(const std::filesystem::path& path) {
  const auto mask = read_mask_if_any(path);
  return mask ? Filter::mask(*mask) : Filter::allow(read_ids(path));
}

Filter read_denied(const std::filesystem::path& path) {
  const auto mask = read_mask_if_any(path);
  if (!mask) return Filter::deny(read_ids(path));
  std::vector<Id> ids;
  for (std::size_t id = 0; id < mask->size(); ++id)
    if ((*mask)[id] != 0) ids.push_back(static_cast<Id>(id));
  return Filter::deny(ids);
}

Filter read_denied_per_query(const Session& session, const std::filesystem::path& path, std::size_t queries) {
  const Matrix<Id> ids = read_neighbor_file(path).neighbors.ids;
  if (ids.rows() < queries)
    refuse(session, "'{}' must have a row for each of the {} queries, got {}", path.string(), queries,
           ids.rows());
  std::vector<std::size_t> offsets = {0};
  std::vector<Id> listed;
  for (std::size_t query = 0; query < queries; ++query) {
    for (const Id id : ids.row(query))
      if (id != no_id) listed.push_back(id);
    offsets.push_back(listed.size());
  }
  return Filter::deny_per_query(offsets, listed);
}

}  // namespace

void add_filter_options(CLI::App& parser, FilterArguments& arguments) {
  add_path(parser, "--filter", arguments.filter,
           "Ids that may be returned: a boolean .npy by id, or ids as .npy .ivecs .ibin or .txt");
  add_path(parser, "--exclude", arguments.exclude,
           "Ids that must not be returned: a boolean .npy by id, or ids as .npy .ivecs .ibin or .txt");
  add_path(parser, "--exclude-per-query", arguments.exclude_per_query,
           "Ids that must not be returned, a row per query: .npy .ivecs .ibin, -1: none");
}

Filter read_filter(const Session& session, const FilterArguments& arguments, std::size_t queries) {
  Filter filter;
  if (!arguments.filter.empty()) filter = read_allowed(arguments.filter);
  if (!arguments.exclude.empty()) filter = filter & read_denied(arguments.exclude);
  if (!arguments.exclude_per_query.empty())
    filter = filter & read_denied_per_query(session, arguments.exclude_per_query, queries);
  return filter;
}

}  // namespace nearwise::cli
