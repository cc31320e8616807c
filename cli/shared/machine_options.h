// Options of commands that compute: where, with how many threads and how much memory.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/shared/progress_bar.h"
#include "nearwise/context.h"

namespace nearwise::cli {

struct MachineArguments {
  std::uint64_t memory = 0;
  std::size_t threads = 0;
  std::string device = "cpu";
  std::string isa;
};

// --memory, --threads, --device and --isa.
void add_machine_options(CLI::App& command, MachineArguments& arguments);

// A context as the options say, which reports to the bar.
Context open_context(const MachineArguments& arguments, ProgressBar& bar, std::uint64_t seed = 0);

}  // namespace nearwise::cli
