// nearwise measure: how many lists of an index a search must look at.
#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "cli/shared/files.h"
#include "cli/shared/index_file.h"
#include "cli/shared/machine_options.h"
#include "cli/shared/session.h"
#include "nearwise/ivf.h"

namespace nearwise::cli {
namespace {

struct MeasureArguments {
  std::filesystem::path index;
  std::filesystem::path rows;
  std::filesystem::path output;
  double recall = 0.9;
  std::size_t queries = 500;
  std::size_t seed = 0;
  bool codes_only = false;
  MachineArguments machine;
};

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, "measure: " + message);
}

// Mistakes in the arguments are told here, so that what the library itself refuses as invalid is the content of a file.
void check_arguments(const MeasureArguments& arguments, const Ivf& index, RowsView rows) {
  if (rows.dim() != index.dim())
    refuse(fmt::format("rows and index must have the same dimension, '{}' has {} and '{}' has {}",
                       arguments.rows.string(), rows.dim(), arguments.index.string(), index.dim()));
  const auto ids = static_cast<std::size_t>(index.next_id());
  if (rows.rows() < ids)
    refuse(fmt::format("a row for every id expected, '{}' has {} and '{}' ids below {}",
                       arguments.rows.string(), rows.rows(), arguments.index.string(), ids));
  if (index.size() < 2)
    refuse(fmt::format("an index of at least 2 rows expected, '{}' has {}", arguments.index.string(),
                       index.size()));
}

ExitCode run_measure(Session& session, const MeasureArguments& arguments) {
  check_index_output(arguments.output);
  const Provenance run = describe_run(session);
  const VectorFile file = open_vectors(arguments.rows);
  const Context machine = open_silent_context(arguments.machine, arguments.seed);
  Ivf index = open_index(machine, arguments.index);
  check_arguments(arguments, index, file.rows());
  blame_data([&] {
    measure_index(
        session, machine, index, file.rows(),
        {.recall = arguments.recall, .queries = arguments.queries, .rerank = !arguments.codes_only});
  });
  record_run(run, index);
  const Interrupt::Protection protection = session.interrupt->protect();
  save(index, arguments.output);
  tell_of_index(session, describe_index(index, arguments.output), index, arguments.output,
                fmt::format("searches look at {} lists", index.probes()));
  return ExitCode::ok;
}

}  // namespace

void add_measure(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<MeasureArguments>();
  CLI::App* const command = add_command(
      app, session, "measure", "Measure how many lists of an index a search must look at",
      "  nearwise measure index.nw base.fbin --recall 0.95 --output index.nw\n\n"
      "Rows of the index are searched for, and the answers compared with exact search; no row counts as its\n"
      "own neighbour. The index keeps the fewest lists that find enough, for searches that do not say how\n"
      "many. nearwise build does it; do it again when many rows have come or gone.");
  add_path(*command, "index", arguments->index, "The index: .nw")->required();
  add_path(*command, "rows", arguments->rows, "The vectors themselves, row i with id i: .npy .fbin ...")
      ->required();
  add_path(*command, "-o,--output", arguments->output, "Where the index goes: .nw, also INDEX itself")
      ->required();
  add_number(*command, "--recall", arguments->recall,
             "Of the 10 nearest rows, the share that a search must find (0.9)");
  add_count(*command, "--queries", arguments->queries, 1, "Rows to search for, drawn by the seed (500)");
  command->add_flag("--codes-only", arguments->codes_only,
                    "For searches without --rows: no second look at the best candidates");
  add_count(*command, "--seed", arguments->seed, 0, "Of the random numbers (0)");
  add_machine_options(*command, arguments->machine);
  command->callback([&session, arguments] {
    check_recall(arguments->recall);
    session.run = [&session, arguments] { return run_measure(session, *arguments); };
  });
}

}  // namespace nearwise::cli
