// The program `nearwise`: nouns with verbs under them, and commands of their own. Every end of the program
// goes through here, with an exit code of cli/shared/exit_code.h.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <exception>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/shared/exit_code.h"
#include "cli/shared/interrupt.h"
#include "cli/shared/session.h"
#include "cli/usage_error.h"
#include "nearwise/machine.h"

namespace nearwise::cli {
namespace {

// A closed standard file would give its number to the next file opened, and messages would end up in the
// output. Opened in the wrong direction, it fails when used.
void occupy_standard_files() {
  for (int file = STDIN_FILENO; file <= STDERR_FILENO; ++file)
    if (fcntl(file, F_GETFD) == -1 && errno == EBADF)
      static_cast<void>(open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY));
}

int exit_status(ExitCode code) {
  const int signal = Interrupt::signal();
  return code == ExitCode::interrupted && signal != 0 ? 128 + signal : static_cast<int>(code);
}

using AddCommand = void (*)(CLI::App& parent, Session& session);

void add_noun(CLI::App& program, Session& session, const std::string& name, const std::string& description,
              std::initializer_list<AddCommand> verbs) {
  CLI::App* const noun = program.add_subcommand(name, description);
  noun->require_subcommand(1);
  for (const AddCommand add : verbs) add(*noun, session);
}

void add_commands(CLI::App& program, Session& session) {
  add_knn(program, session);
  add_noun(program, session, "index",
           "Indexes (inverted files, search graphs): choose, build, update, search",
           {add_index_choose, add_index_build, add_index_add, add_index_remove, add_index_merge,
            add_index_calibrate, add_index_search, add_index_export});
  add_noun(program, session, "graph", "k-nearest-neighbour graphs: build, update, measure, use",
           {add_graph_build, add_graph_merge, add_graph_add, add_graph_remove, add_graph_eval, add_graph_path,
            add_graph_components, add_graph_duplicates, add_graph_export});
  add_noun(program, session, "quantizer", "Vector quantizers: train, encode, decode",
           {add_quantizer_train, add_quantizer_encode, add_quantizer_decode});
  add_noun(program, session, "plan", "Tasks, disk, memory and time of a build over files, before it starts",
           {add_plan_index, add_plan_graph, add_plan_join, add_plan_dedup});
  for (const AddCommand add :
       {add_kmeans, add_join, add_dedup, add_eval, add_convert, add_verify, add_info, add_completion})
    add(program, session);
}

// "help index build" means "index build --help".
std::vector<char*> resolve_help(int argc, char** argv) {
  static char option[] = "--help";
  std::vector<char*> arguments(argv, argv + argc);
  if (argc < 2 || std::string_view(argv[1]) != "help") return arguments;
  arguments.erase(arguments.begin() + 1);
  arguments.push_back(option);
  return arguments;
}

// Returns true if there is a command to run; otherwise `code` is how the program ends.
bool parse(CLI::App& program, Session& session, int argc, char** argv, ExitCode& code) {
  try {
    std::vector<char*> arguments = resolve_help(argc, argv);
    program.parse(static_cast<int>(arguments.size()), arguments.data());
    return true;
  } catch (const CLI::Success& success) {  // --help, --version: printed by CLI11
    program.exit(success);
    finish_output();
    code = ExitCode::ok;
  } catch (const CLI::ParseError& error) {
    // The parser may have stopped before the flag.
    const bool json = std::ranges::count(session.arguments, "--json") > 0;
    report({ExitCode::usage, "usage", explain(program, error)}, json);
    code = ExitCode::usage;
  }
  return false;
}

ExitCode run(Session& session, int argc, char** argv) {
  CLI::App program("Nearest-neighbour search: exact, with indexes, with graphs.", "nearwise");
  program.set_version_flag("--version", "nearwise " + version());
  program.require_subcommand(1);
  program.footer(
      "Help and examples of a command: nearwise index build --help\n"
      "To compare indexes and libraries on your vectors: nearwise bench, in the Python package\n"
      "To compare a CUDA device with the CPU, byte for byte: nearwise gpu-check, in the Python package\n"
      "Exit codes: 0 ok, 2 usage, 65 bad data, 66 no input, 69 device not available, 70 internal,\n"
      "71 memory or system, 73 cannot create, 74 I/O, 130 interrupted");
  add_commands(program, session);

  ExitCode code = ExitCode::ok;
  if (!parse(program, session, argc, argv, code)) return code;
  code = session.run();
  session.interrupt->check();  // a signal too late to stop anything still sets the exit code
  finish_output();
  return code;
}

}  // namespace
}  // namespace nearwise::cli

int main(int argc, char** argv) {
  using namespace nearwise::cli;
  occupy_standard_files();
  // A write beyond the limit of `ulimit -f` then fails like any other, and its temporary file is removed.
  static_cast<void>(std::signal(SIGXFSZ, SIG_IGN));
  Session session;
  try {
    session.arguments.assign(argv + std::min(argc, 1), argv + argc);
    Interrupt interrupt([&session](int signal) {
      report({ExitCode::interrupted, "cancelled", "interrupted"}, session.json);
      _exit(128 + signal);
    });
    session.interrupt = &interrupt;
    return exit_status(run(session, argc, argv));
  } catch (const std::exception& exception) {
    const Failure failure = describe(exception);
    report(failure, session.json);
    return exit_status(failure.exit_code);
  }
}
