// The options that restrict a search to some ids.
#pragma once

#include <cstddef>
#include <filesystem>

#include <CLI/CLI.hpp>

#include "cli/shared/session.h"
#include "nearwise/filter.h"

namespace nearwise::cli {

struct FilterArguments {
  std::filesystem::path filter;             // a mask or ids
  std::filesystem::path exclude;            // likewise
  std::filesystem::path exclude_per_query;  // ids, a row for each query

  bool any() const { return !filter.empty() || !exclude.empty() || !exclude_per_query.empty(); }
};

void add_filter_options(CLI::App& parser, FilterArguments& arguments);

// For a search of this many queries.
Filter read_filter(const Session& session, const FilterArguments& arguments, std::size_t queries);

}  // namespace nearwise::cli
