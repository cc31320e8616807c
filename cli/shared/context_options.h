// Options of commands that compute: device, threads, memory limit, instruction set.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/shared/session.h"
#include "nearwise/context.h"

namespace nearwise::cli {

struct ContextArguments {
  std::uint64_t memory_limit = 0;
  std::size_t threads = 0;
  std::string device = "cpu";
  std::string isa;
};

// --memory-limit, --threads, --device and --isa.
void add_context_options(CLI::App& parser, ContextArguments& arguments);

// Reports no progress: see Work.
Context open_context(const ContextArguments& arguments, std::uint64_t seed = 0);

// device, isa, threads and memory_peak_bytes.
Json describe_context(const Context& context);

}  // namespace nearwise::cli
