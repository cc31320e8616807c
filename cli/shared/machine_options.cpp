#include "cli/shared/machine_options.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "cli/shared/session.h"

namespace nearwise::cli {

void add_machine_options(CLI::App& command, MachineArguments& arguments) {
  add_bytes(command, "--memory", arguments.memory,
            "Working memory and results stay below this: 2GiB, 500MB, 1073741824 (no limit)");
  add_count(command, "--threads", arguments.threads, 1, "Threads (all that the machine offers)");
  command.add_option("--device", arguments.device, "cpu, cuda or cuda:N (cpu)")->type_name("NAME");
  command
      .add_option("--isa", arguments.isa,
                  "Use at most this instruction set (the best; see nearwise info; CUDA: f32, tf32, bf16)")
      ->type_name("NAME");
}

Context open_context(const MachineArguments& arguments, ProgressBar& bar, std::uint64_t seed) {
  ContextOptions options;
  // A number too large for int is too large for the library as well, which says so.
  options.threads = static_cast<int>(std::min<std::size_t>(arguments.threads, INT_MAX));
  options.memory_limit = arguments.memory;
  options.seed = seed;
  options.isa = arguments.isa;
  options.progress = bar.callback();
  return Context::on(arguments.device, std::move(options));
}

}  // namespace nearwise::cli
