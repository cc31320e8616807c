// nearwise add, remove, merge: an index with other rows.
#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "cli/shared/files.h"
#include "cli/shared/index_file.h"
#include "cli/shared/machine_options.h"
#include "cli/shared/progress_bar.h"
#include "cli/shared/session.h"
#include "nearwise/ivf.h"

namespace nearwise::cli {
namespace {

struct ChangeArguments {
  std::filesystem::path index;
  std::filesystem::path output;
  std::filesystem::path rows;  // add
  std::filesystem::path ids;   // add, remove
  std::size_t first_id = 0;
  bool has_first_id = false;
  std::vector<std::string> others;  // merge
  MachineArguments machine;
};

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::invalid_argument, message); }

// The ids of new rows; none: the library numbers them.
std::vector<Id> ids_for(const ChangeArguments& arguments, RowsView rows) {
  std::vector<Id> ids;
  if (!arguments.ids.empty()) {
    ids = read_ids(arguments.ids);
    if (ids.size() != rows.rows())
      refuse(fmt::format("add: one id per row expected, '{}' has {} and '{}' {} rows", arguments.ids.string(),
                         ids.size(), arguments.rows.string(), rows.rows()));
  } else if (arguments.has_first_id) {
    constexpr auto most = static_cast<std::size_t>(std::numeric_limits<Id>::max());
    if (arguments.first_id > most || rows.rows() > most - arguments.first_id)
      refuse(fmt::format("add: ids from {} on exceed {}", arguments.first_id, most - 1));
    ids.resize(rows.rows());
    std::iota(ids.begin(), ids.end(), static_cast<Id>(arguments.first_id));
  }
  return ids;
}

void check_rows(const ChangeArguments& arguments, const Ivf& index, RowsView rows) {
  if (rows.dim() != index.dim())
    refuse(fmt::format("add: rows and index must have the same dimension, '{}' has {} and '{}' has {}",
                       arguments.rows.string(), rows.dim(), arguments.index.string(), index.dim()));
}

ExitCode run_add(Session& session, const ChangeArguments& arguments) {
  check_index_output(arguments.output);
  const Provenance run = describe_run(session);
  const VectorFile file = open_vectors(arguments.rows);
  const RowsView rows = file.rows();
  const Context context = open_silent_context(arguments.machine);
  Ivf index = open_index(context, arguments.index);
  check_rows(arguments, index, rows);
  const std::vector<Id> ids = ids_for(arguments, rows);

  ProgressBar bar(choose_progress_style(session.quiet), "add", "rows", rows.rows());
  const Interrupt::Protection protection = session.interrupt->protect([&context] { context.cancel(); });
  add_rows(session, context, index, rows, ids, bar);
  bar.finish();
  session.interrupt->check();
  record_run(run, index);
  save(index, arguments.output);
  Json json = describe_index(index, arguments.output);
  json["added"] = rows.rows();
  tell_of_index(session, json, index, arguments.output, fmt::format("{} added", rows.rows()));
  return ExitCode::ok;
}

ExitCode run_remove(Session& session, const ChangeArguments& arguments) {
  check_index_output(arguments.output);
  const Provenance run = describe_run(session);
  const std::vector<Id> ids = read_ids(arguments.ids);
  const Context context = open_silent_context(arguments.machine);
  Ivf index = open_index(context, arguments.index);
  ProgressBar bar(choose_progress_style(session.quiet), "remove", "rows", index.size());
  const Context own = context.with_progress(bar.callback());
  const Interrupt::Protection protection = session.interrupt->protect([&own] { own.cancel(); });
  const std::size_t removed = index.remove(own, ids);
  bar.finish();
  session.interrupt->check();
  record_run(run, index);
  save(index, arguments.output);
  Json json = describe_index(index, arguments.output);
  json["removed"] = removed;
  tell_of_index(session, json, index, arguments.output, fmt::format("{} removed", removed));
  return ExitCode::ok;
}

// From files to a file: rows take no memory.
ExitCode run_merge(Session& session, const ChangeArguments& arguments) {
  check_index_output(arguments.output);
  const Provenance run = describe_run(session);
  const Context context = open_silent_context(arguments.machine);
  std::vector<std::filesystem::path> files = {arguments.index};
  files.insert(files.end(), arguments.others.begin(), arguments.others.end());
  std::uint64_t rows = 0;
  for (const std::filesystem::path& file : files) rows += count_index_rows(file);
  const std::uint64_t merged = rows - count_index_rows(arguments.index);
  ProgressBar bar(choose_progress_style(session.quiet), "merge", "rows", rows);
  const Context own = context.with_progress(bar.callback());
  const Interrupt::Protection protection = session.interrupt->protect([&own] { own.cancel(); });
  merge_ivf_files(own, files, arguments.output, run);
  bar.finish();
  const Ivf index = open_index(context, arguments.output);
  Json json = describe_index(index, arguments.output);
  json["merged"] = merged;
  tell_of_index(session, json, index, arguments.output, fmt::format("{} merged", merged));
  return ExitCode::ok;
}

using Run = ExitCode (*)(Session& session, const ChangeArguments& arguments);

// INDEX, --output, and the options of the machine.
void add_common(CLI::App& command, Session& session, const std::shared_ptr<ChangeArguments>& arguments,
                Run run) {
  add_path(command, "-o,--output", arguments->output, "Where the index goes: .nw, also INDEX itself")
      ->required();
  add_machine_options(command, arguments->machine);
  command.callback([&session, arguments, run] {
    session.run = [&session, arguments, run] { return run(session, *arguments); };
  });
}

constexpr const char* ids_help = "One id per row: .npy .ivecs .ibin, or .txt with one in every line";

}  // namespace

void add_add(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<ChangeArguments>();
  CLI::App* const command = add_command(
      app, session, "add", "Add the rows of a file to an index",
      "  nearwise add index.nw more.fbin --output index.nw\n"
      "  nearwise add trained.nw part2.fbin --first-id 1000000 --output part2.nw\n\n"
      "Without --ids and --first-id rows are numbered from one above the largest id there ever was.");
  add_path(*command, "index", arguments->index, "The index: .nw")->required();
  add_path(*command, "rows", arguments->rows, "Vectors: .npy .fbin .fvecs .u8bin ...")->required();
  CLI::Option* const ids = add_path(*command, "--ids", arguments->ids, ids_help);
  CLI::Option* const first_id =
      add_count(*command, "--first-id", arguments->first_id, 0, "The id of the first row, others in turn");
  first_id->excludes(ids);
  add_common(*command, session, arguments, run_add);
  command->parse_complete_callback([arguments, first_id] { arguments->has_first_id = !first_id->empty(); });
}

void add_remove(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<ChangeArguments>();
  CLI::App* const command = add_command(app, session, "remove", "Remove rows from an index by their ids",
                                        "  nearwise remove index.nw --ids gone.txt --output index.nw\n\n"
                                        "Ids that are not there are passed over.");
  add_path(*command, "index", arguments->index, "The index: .nw")->required();
  add_path(*command, "--ids", arguments->ids, ids_help)->required();
  add_common(*command, session, arguments, run_remove);
}

void add_merge(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<ChangeArguments>();
  CLI::App* const command =
      add_command(app, session, "merge", "Merge indexes that come from one training",
                  "  nearwise merge part1.nw part2.nw part3.nw --output index.nw\n\n"
                  "Parts: nearwise build --train-only, then nearwise add --first-id to a copy for each.");
  add_path(*command, "index", arguments->index, "The first index: .nw")->required();
  command->add_option("others", arguments->others, "Indexes whose rows are appended")
      ->type_name("FILE")
      ->required();
  add_common(*command, session, arguments, run_merge);
}

}  // namespace nearwise::cli
