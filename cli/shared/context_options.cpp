#include "cli/shared/context_options.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "cli/shared/command.h"

namespace nearwise::cli {

void add_context_options(CLI::App& parser, ContextArguments& arguments) {
  add_bytes(parser, "--memory-limit", arguments.memory_limit,
            "Bound on working memory and results: 2GiB, 500MB, 1073741824 (default: no limit)");
  add_count(parser, "--threads", arguments.threads, 1, "Threads (default: all CPUs)")->default_str("");
  parser.add_option("--device", arguments.device, "Device: cpu, cuda or cuda:N")
      ->type_name("NAME")
      ->default_str(arguments.device);
  parser
      .add_option(
          "--isa", arguments.isa,
          "Highest instruction set to use (default: the best; see nearwise info); on a CUDA device the "
          "type of products: f32, tf32 or bf16")
      ->type_name("NAME");
}

Context open_context(const ContextArguments& arguments, std::uint64_t seed) {
  ContextOptions options;
  // A number too large for int is too large for the library as well, which says so.
  options.threads = static_cast<int>(std::min<std::size_t>(arguments.threads, INT_MAX));
  options.memory_limit = arguments.memory_limit;
  options.seed = seed;
  options.isa = arguments.isa;
  return Context::on(arguments.device, std::move(options));
}

Json describe_context(const Context& context) {
  return {{"device", name(context.place())},
          {"isa", context.isa()},
          {"threads", context.threads()},
          {"memory_peak_bytes", context.memory_peak()}};
}

}  // namespace nearwise::cli
