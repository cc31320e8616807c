// The command `nearwise`: one subcommand per task. Every way out of the program goes through here, with an exit
// code of cli/shared/exit_code.h.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <exception>
#include <string>

#include "cli/shared/exit_code.h"
#include "cli/shared/interrupt.h"
#include "cli/shared/session.h"
#include "nearwise/machine.h"

namespace nearwise::cli {
namespace {

// A standard file closed by whoever started us would give its number to the next file opened, and messages would end
// up in the output. Opened the wrong way round, it refuses to be used instead.
void occupy_standard_files() {
  for (int file = STDIN_FILENO; file <= STDERR_FILENO; ++file)
    if (fcntl(file, F_GETFD) == -1 && errno == EBADF)
      static_cast<void>(open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY));
}

// The name of the subcommand under which parsing stopped, for the hint at its help.
std::string help_command(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? "nearwise --help" : "nearwise " + chosen.front()->get_name() + " --help";
}

int exit_status(ExitCode code) {
  const int signal = Interrupt::signal();
  return code == ExitCode::interrupted && signal != 0 ? 128 + signal : static_cast<int>(code);
}

// Returns true if there is a command to run; otherwise `code` is how the program ends.
bool parse(CLI::App& app, Session& session, int argc, char** argv, ExitCode& code) {
  try {
    app.parse(argc, argv);
    return true;
  } catch (const CLI::Success& success) {  // --help, --version: printed by CLI11
    app.exit(success);
    finish_output();
    code = ExitCode::ok;
  } catch (const CLI::ParseError& error) {
    // CLI11 asks for a subcommand before it looks at a word that is none.
    std::string message = error.what();
    if (app.get_subcommands().empty())
      for (const std::string& word : app.remaining())
        if (!word.starts_with('-')) message = "there is no command '" + word + "'";
    // The flag itself may not have been reached.
    const bool json = std::count(session.arguments.begin(), session.arguments.end(), "--json") > 0;
    report({ExitCode::usage, "usage", message + " (see '" + help_command(app) + "')"}, json);
    code = ExitCode::usage;
  }
  return false;
}

ExitCode run(Session& session, int argc, char** argv) {
  CLI::App app("Nearest neighbours: exact search, indexes, evaluation, and the files around them.",
               "nearwise");
  app.set_version_flag("--version", "nearwise " + version());
  app.require_subcommand(1);
  app.footer(
      "Each command explains itself: nearwise knn --help\nExit codes: 0 ok, 2 usage, 65 bad data, "
      "66 no input, 69 device not available, 70 internal,\n71 memory or system, 73 cannot create, 74 I/O, "
      "130 interrupted");
  add_knn(app, session);
  add_build(app, session);
  add_add(app, session);
  add_remove(app, session);
  add_merge(app, session);
  add_measure(app, session);
  add_search(app, session);
  add_train(app, session);
  add_encode(app, session);
  add_decode(app, session);
  add_kmeans(app, session);
  add_graph(app, session);
  add_plan(app, session);
  add_eval(app, session);
  add_convert(app, session);
  add_verify(app, session);
  add_info(app, session);

  ExitCode code = ExitCode::ok;
  if (!parse(app, session, argc, argv, code)) return code;
  code = session.run();
  session.interrupt->check();  // a signal too late to stop anything is still answered by the exit code
  finish_output();
  return code;
}

}  // namespace
}  // namespace nearwise::cli

int main(int argc, char** argv) {
  using namespace nearwise::cli;
  occupy_standard_files();
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
