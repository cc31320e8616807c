// nearwise knn: exact neighbours of the rows of one file among the rows of another, or among its own.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "cli/shared/files.h"
#include "cli/shared/machine_options.h"
#include "cli/shared/progress_bar.h"
#include "cli/shared/result_file.h"
#include "cli/shared/session.h"
#include "cli/shared/text.h"
#include "nearwise/context.h"
#include "nearwise/exact.h"
#include "nearwise/vector_file.h"

namespace nearwise::cli {
namespace {

struct KnnArguments {
  std::filesystem::path base;
  std::filesystem::path queries;
  std::filesystem::path output;  // empty: the first rows are printed
  std::size_t k = 10;
  std::string metric = "sqeuclidean";
  std::string short_rows = "refuse";
  bool exclude_self = false;      // the queries are the base
  std::size_t limit_queries = 0;  // 0: all
  MachineArguments machine;
};

// What came out, and how long it took.
struct Run {
  Neighbors neighbors;
  double seconds = 0;
  double queries_per_second = 0;
};

// How many rows may be neighbours of a query.
std::size_t candidates(const KnnArguments& arguments, RowsView base) {
  return base.rows() - (arguments.exclude_self && base.rows() > 0 ? 1 : 0);
}

std::string describe_candidates(const KnnArguments& arguments, RowsView base) {
  return fmt::format("{} {}rows", candidates(arguments, base), arguments.exclude_self ? "other " : "");
}

// Mistakes in the arguments are told here, so that what knn itself refuses as invalid is the content of a file.
void check_shapes(const KnnArguments& arguments, RowsView queries, RowsView base) {
  if (queries.dim() != base.dim())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("knn: queries and base must have the same dimension, '{}' has {} and '{}' has {}",
                            arguments.queries.string(), queries.dim(), arguments.base.string(), base.dim()));
  if (arguments.k > candidates(arguments, base) && arguments.short_rows != "pad")
    throw Error(ErrorCode::invalid_argument,
                fmt::format("knn: k = {} exceeds the {} of '{}' (--short-rows pad fills up with -1)",
                            arguments.k, describe_candidates(arguments, base), arguments.base.string()));
}

Run search(const Context& context, const KnnArguments& arguments, RowsView queries, RowsView base) {
  const KnnOptions options{.metric = parse_metric(arguments.metric),
                           .short_rows = arguments.short_rows == "pad" ? ShortRows::pad : ShortRows::refuse};
  const auto start = std::chrono::steady_clock::now();
  Run run;
  run.neighbors = blame_data([&] {
    return arguments.exclude_self ? exact_knn_graph(context, base, arguments.k, options)
                                  : knn(context, queries, base, arguments.k, options);
  });
  run.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (run.seconds > 0) run.queries_per_second = static_cast<double>(queries.rows()) / run.seconds;
  return run;
}

// --exclude-self without --queries means the base; another file's rows cannot be told to be the same ones.
void choose_queries(KnnArguments& arguments) {
  if (!arguments.exclude_self) return;
  if (arguments.queries.empty()) arguments.queries = arguments.base;
  std::error_code missing;  // is told when the file is opened
  if (arguments.queries != arguments.base &&
      !std::filesystem::equivalent(arguments.queries, arguments.base, missing) && !missing)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("knn: with --exclude-self the queries are the base; leave out --queries '{}'",
                            arguments.queries.string()));
}

Json summary(const KnnArguments& arguments, const Context& context, RowsView base, const Run& run) {
  Json json = {{"rows", run.neighbors.ids.rows()},
               {"k", run.neighbors.ids.cols()},
               {"seconds", run.seconds},
               {"queries_per_second", run.queries_per_second},
               {"output", nullptr},
               {"metric", arguments.metric},
               {"exclude_self", arguments.exclude_self},
               {"base_rows", base.rows()},
               {"dim", base.dim()},
               {"device", arguments.machine.device},
               {"isa", context.isa()},
               {"threads", context.threads()},
               {"memory_peak_bytes", context.memory_peak()}};
  if (!arguments.output.empty()) {
    json["output"] = arguments.output.string();
    return json;
  }
  json["first_rows"] = first_rows(run.neighbors);
  return json;
}

std::string preview(const KnnArguments& arguments, RowsView base, const Run& run) {
  const Neighbors& found = run.neighbors;
  const std::string title = fmt::format("{} nearest of {} by {}, {} queries in {:.3g} s ({} queries/s)\n",
                                        arguments.k, describe_candidates(arguments, base), arguments.metric,
                                        found.ids.rows(), run.seconds, format_count(run.queries_per_second));
  return title + preview_of(found);
}

ExitCode run_knn(Session& session, KnnArguments arguments) {
  choose_queries(arguments);
  if (!arguments.output.empty()) {
    require_suffix_for(Content::neighbors, arguments.output);
    check_output("knn", arguments.output, {arguments.base, arguments.queries});
  }
  const VectorFile base_file = open_vectors(arguments.base);
  const VectorFile query_file = open_vectors(arguments.queries);
  const RowsView base = base_file.rows();
  RowsView queries = query_file.rows();
  Provenance provenance = describe_run(session);
  provenance["base"] = describe_input(arguments.base, base);
  provenance["queries"] = describe_input(arguments.queries, queries);
  if (arguments.limit_queries > 0)
    queries = queries.slice(0, std::min(arguments.limit_queries, queries.rows()));
  check_shapes(arguments, queries, base);

  ProgressBar bar(choose_progress_style(session.quiet), "knn", "queries", queries.rows());
  const Context context = open_context(arguments.machine, bar);
  const Interrupt::Protection protection = session.interrupt->protect([&context] { context.cancel(); });
  Run run = search(context, arguments, queries, base);
  bar.finish();
  session.interrupt->check();

  const Json json = summary(arguments, context, base, run);
  if (arguments.output.empty()) {
    session.json ? print(json) : print(preview(arguments, base, run));
    return ExitCode::ok;
  }
  const std::string done = fmt::format(
      "wrote {} x {} to {}: {:.3g} s, {} queries/s", run.neighbors.ids.rows(), run.neighbors.ids.cols(),
      arguments.output.string(), run.seconds, format_count(run.queries_per_second));
  write_result(arguments.output, parse_metric(arguments.metric), std::move(provenance),
               std::move(run.neighbors));
  session.json ? print(json) : remark(session, done);
  return ExitCode::ok;
}

}  // namespace

void add_knn(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<KnnArguments>();
  CLI::App* const command = add_command(
      app, session, "knn", "Find the exact nearest neighbours of every query",
      "  nearwise knn --base base.fbin --queries queries.fbin -k 10 --memory 2GiB --output truth.nw\n"
      "  nearwise knn --base base.fbin --exclude-self -k 10 --output graph.nw\n\n"
      "The suffix of --output chooses the format: .nw keeps ids, distances, metric and where they came "
      "from;\n"
      ".bin keeps ids and distances; .ivecs, .ibin and .npy keep ids.");
  add_path(*command, "--base", arguments->base, "Vectors to search in: .npy .fbin .fvecs .u8bin ...")
      ->required();
  const CLI::Option* const queries =
      add_path(*command, "--queries", arguments->queries, "Vectors to search for");
  command->add_flag("--exclude-self", arguments->exclude_self,
                    "The queries are the base, and no row is its own neighbour; leave out --queries");
  add_count(*command, "-k", arguments->k, 1, "Neighbours of each query (10)");
  add_word(*command, "--metric", arguments->metric, parse_metric,
           "sqeuclidean, euclidean, inner_product (largest first) or cosine (sqeuclidean)");
  add_path(*command, "-o,--output", arguments->output,
           "Where the neighbours go; without it a few are printed");
  add_machine_options(*command, arguments->machine);
  command
      ->add_option("--short-rows", arguments->short_rows,
                   "If k exceeds the base: refuse, or pad with id -1 (refuse)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"refuse", "pad"}));
  add_count(*command, "--limit-queries", arguments->limit_queries, 1, "Only the first N queries")
      ->excludes("--exclude-self");
  command->callback([&session, arguments, queries] {
    if (queries->empty() && !arguments->exclude_self) throw CLI::RequiredError("--queries");
    session.run = [&session, arguments] { return run_knn(session, *arguments); };
  });
}

}  // namespace nearwise::cli
