// Messages for command lines that cannot be parsed, with the word that was probably meant.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace nearwise::cli {

// "index search: unknown option --nprobe; did you mean --probes? (see 'nearwise index search --help')"
std::string explain(const CLI::App& program, const CLI::ParseError& error);

}  // namespace nearwise::cli
