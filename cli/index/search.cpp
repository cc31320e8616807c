// nearwise search: the neighbours of the rows of a file that an index finds.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "cli/shared/elements.h"
#include "cli/shared/files.h"
#include "cli/shared/index_file.h"
#include "cli/shared/machine_options.h"
#include "cli/shared/progress_bar.h"
#include "cli/shared/result_file.h"
#include "cli/shared/session.h"
#include "cli/shared/text.h"
#include "nearwise/ivf.h"

namespace nearwise::cli {
namespace {

struct SearchArguments {
  std::filesystem::path index;
  std::filesystem::path queries;
  std::filesystem::path rows;    // empty: no second look
  std::filesystem::path output;  // empty: the first rows are printed
  std::size_t k = 10;
  std::size_t probes = 0;      // 0: the index's own number
  std::size_t candidates = 0;  // 0: the library's choice
  std::size_t limit_queries = 0;
  MachineArguments machine;
};

// Every query's answer is the same in any batch: these make progress to be seen.
constexpr std::size_t batch_queries = 16384;

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, "search: " + message);
}

// Mistakes in the arguments are told here, so that what the library itself refuses as invalid is the content of a file.
void check_arguments(const SearchArguments& arguments, const Ivf& index, RowsView queries, RowsView rows) {
  const auto require_dim = [&](const std::filesystem::path& path, RowsView view) {
    if (view.dim() != index.dim())
      refuse(fmt::format("vectors and index must have the same dimension, '{}' has {} and '{}' has {}",
                         path.string(), view.dim(), arguments.index.string(), index.dim()));
  };
  require_dim(arguments.queries, queries);
  if (arguments.probes > index.lists())
    refuse(fmt::format("{} probes exceed the {} lists of '{}'", arguments.probes, index.lists(),
                       arguments.index.string()));
  if (arguments.rows.empty()) return;
  require_dim(arguments.rows, rows);
  if (arguments.candidates != 0 && arguments.candidates < arguments.k)
    refuse(fmt::format("{} candidates are fewer than k = {}", arguments.candidates, arguments.k));
  const auto ids = static_cast<std::size_t>(index.next_id());
  if (rows.rows() == 0 || rows.rows() < ids)
    refuse(fmt::format("a row for every id expected, '{}' has {} and '{}' ids below {}",
                       arguments.rows.string(), rows.rows(), arguments.index.string(), ids));
}

// What the answers leave of --memory.
MachineArguments rest_of_memory(const SearchArguments& arguments, std::size_t queries) {
  MachineArguments machine = arguments.machine;
  if (machine.memory == 0) return machine;
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(queries, arguments.k, &bytes) ||
      __builtin_mul_overflow(bytes, sizeof(Id) + sizeof(float), &bytes) || bytes >= machine.memory)
    throw Error(ErrorCode::out_of_memory,
                fmt::format("search: the answers of {} queries with k = {} exceed --memory {}", queries,
                            arguments.k, format_bytes(machine.memory)));
  machine.memory -= bytes;
  return machine;
}

Neighbors search(const Session& session, const Context& context, const SearchArguments& arguments,
                 const Ivf& index, RowsView queries, RowsView rows, ProgressBar& bar) {
  const IvfSearchOptions options{
      .probes = arguments.probes, .rows = rows, .candidates = arguments.candidates};
  Neighbors all{Matrix<Id>(queries.rows(), arguments.k), Matrix<float>(queries.rows(), arguments.k)};
  for (std::size_t first = 0; first < queries.rows(); first += batch_queries) {
    session.interrupt->check();
    const RowsView batch = queries.slice(first, std::min(batch_queries, queries.rows() - first));
    require_finite(batch, first);
    const Neighbors found = blame_data([&] { return index.search(context, batch, arguments.k, options); });
    const std::size_t values = batch.rows() * arguments.k;
    std::copy_n(found.ids.data(), values, all.ids.data() + first * arguments.k);
    std::copy_n(found.distances.data(), values, all.distances.data() + first * arguments.k);
    bar.update(first + batch.rows(), queries.rows());
  }
  return all;
}

ExitCode run_search(Session& session, const SearchArguments& arguments) {
  if (!arguments.output.empty()) {
    require_suffix_for(Content::neighbors, arguments.output);
    check_output("search", arguments.output, {arguments.index, arguments.queries, arguments.rows});
  }
  const VectorFile query_file = open_vectors(arguments.queries);
  std::optional<VectorFile> rows_file;
  if (!arguments.rows.empty()) rows_file.emplace(open_vectors(arguments.rows));
  const RowsView rows = rows_file ? rows_file->rows() : RowsView();
  RowsView queries = query_file.rows();
  Provenance provenance = describe_run(session);
  provenance["queries"] = describe_input(arguments.queries, queries);
  if (rows_file) provenance["base"] = describe_input(arguments.rows, rows);
  if (arguments.limit_queries > 0)
    queries = queries.slice(0, std::min(arguments.limit_queries, queries.rows()));

  const Context context = open_silent_context(rest_of_memory(arguments, queries.rows()));
  const Ivf index = open_index(context, arguments.index);
  check_arguments(arguments, index, queries, rows);
  provenance["index"] = fmt::format("{}, {} bytes, {} rows in {} lists", arguments.index.string(),
                                    std::filesystem::file_size(arguments.index), index.size(), index.lists());

  ProgressBar bar(choose_progress_style(session.quiet), "search", "queries", queries.rows());
  const Interrupt::Protection protection = session.interrupt->protect([&context] { context.cancel(); });
  const auto start = std::chrono::steady_clock::now();
  Neighbors found = search(session, context, arguments, index, queries, rows, bar);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double rate = seconds > 0 ? static_cast<double>(queries.rows()) / seconds : 0;
  bar.finish();
  session.interrupt->check();

  const std::size_t probes = arguments.probes != 0 ? arguments.probes : index.probes();
  Json json = {{"rows", found.ids.rows()},
               {"k", found.ids.cols()},
               {"seconds", seconds},
               {"queries_per_second", rate},
               {"output", nullptr},
               {"metric", name(index.metric())},
               {"probes", probes},
               {"lists", index.lists()},
               {"index_rows", index.size()},
               {"dim", index.dim()},
               {"rerank", rows_file.has_value()},
               {"isa", context.isa()},
               {"threads", context.threads()},
               {"memory_peak_bytes", context.memory_peak()}};
  if (arguments.output.empty()) {
    json["first_rows"] = first_rows(found);
    const std::string title =
        fmt::format("{} nearest of {} rows by {}, {} of {} lists, {} queries in {:.3g} s ({} queries/s)\n",
                    arguments.k, index.size(), name(index.metric()), probes, index.lists(), queries.rows(),
                    seconds, format_count(rate));
    session.json ? print(json) : print(title + preview_of(found));
    return ExitCode::ok;
  }
  json["output"] = arguments.output.string();
  const std::string done = fmt::format("wrote {} x {} to {}: {} of {} lists, {:.3g} s, {} queries/s",
                                       found.ids.rows(), found.ids.cols(), arguments.output.string(), probes,
                                       index.lists(), seconds, format_count(rate));
  write_result(arguments.output, index.metric(), std::move(provenance), std::move(found));
  session.json ? print(json) : remark(session, done);
  return ExitCode::ok;
}

}  // namespace

void add_search(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<SearchArguments>();
  CLI::App* const command = add_command(
      app, session, "search", "Find neighbours of every query with an index",
      "  nearwise search index.nw queries.fbin -k 10 --probes 32 --output found.nw\n"
      "  nearwise search index.nw queries.fbin -k 10 --rows base.fbin --candidates 200 --output found.nw\n\n"
      "--rows gives the best candidates a second look, in the vectors themselves. nearwise eval tells how\n"
      "much of the truth, from nearwise knn, was found.");
  add_path(*command, "index", arguments->index, "The index: .nw")->required();
  add_path(*command, "queries", arguments->queries, "Vectors to search for: .npy .fbin .fvecs ...")
      ->required();
  add_count(*command, "-k,--k", arguments->k, 1, "Neighbours of each query (10)");
  add_count(*command, "--probes", arguments->probes, 1, "Lists to look at (the index's own number)");
  CLI::Option* const rows =
      add_path(*command, "--rows", arguments->rows, "The vectors themselves, row i with id i: a second look");
  add_count(*command, "--candidates", arguments->candidates, 1,
            "Rows to look at again, at least k (the index's own number)")
      ->needs(rows);
  add_path(*command, "-o,--output", arguments->output,
           "Where the neighbours go; without it a few are printed");
  add_count(*command, "--limit-queries", arguments->limit_queries, 1, "Only the first N queries");
  add_machine_options(*command, arguments->machine);
  command->callback([&session, arguments] {
    session.run = [&session, arguments] { return run_search(session, *arguments); };
  });
}

}  // namespace nearwise::cli
