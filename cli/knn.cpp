// nearwise knn: exact nearest neighbours, of queries in a base or of every vector of the base.
#include <optional>
#include <system_error>
#include <utility>

#include "cli/commands.h"
#include "cli/shared/command.h"
#include "cli/shared/files.h"
#include "cli/shared/filter_file.h"
#include "cli/shared/search_report.h"
#include "cli/shared/work.h"
#include "nearwise/exact.h"

namespace nearwise::cli {
namespace {

struct KnnArguments {
  std::filesystem::path base;
  std::filesystem::path queries;
  std::filesystem::path output;  // empty: the first answers are printed
  std::size_t k = 10;
  Metric metric = Metric::sqeuclidean;
  bool pad = false;
  bool exclude_self = false;
  std::optional<std::size_t> limit_queries;
  FilterArguments filter;
  ContextArguments context;
};

// With --exclude-self the queries are the base, which may be named a second time.
std::filesystem::path choose_queries(const Session& session, const KnnArguments& arguments) {
  if (!arguments.exclude_self) {
    if (arguments.queries.empty()) refuse(session, "expected a file of queries, or --exclude-self");
    return arguments.queries;
  }
  if (arguments.queries.empty()) return arguments.base;
  std::error_code missing;  // reported when the file is opened
  if (arguments.queries != arguments.base &&
      !std::filesystem::equivalent(arguments.queries, arguments.base, missing) && !missing)
    refuse(session, "with --exclude-self the queries are the base; leave out '{}'",
           arguments.queries.string());
  return arguments.queries;
}

std::string describe_base(const KnnArguments& arguments, RowsView base) {
  if (!arguments.exclude_self) return fmt::format("{} vectors", base.rows());
  return fmt::format("{} other vectors", base.rows() > 0 ? base.rows() - 1 : 0);
}

void check_shapes(const Session& session, const KnnArguments& arguments, RowsView queries, RowsView base) {
  if (queries.dim() != base.dim())
    refuse(session, "queries and base must have the same dimension, '{}' has {} and '{}' has {}",
           arguments.queries.string(), queries.dim(), arguments.base.string(), base.dim());
  const std::size_t most = base.rows() - (arguments.exclude_self && base.rows() > 0 ? 1 : 0);
  if (arguments.k > most && !arguments.pad && !arguments.filter.any())
    refuse(session, "k must be at most the {} of '{}', got {} (--pad fills missing neighbours with id -1)",
           describe_base(arguments, base), arguments.base.string(), arguments.k);
}

ExitCode run_knn(Session& session, const KnnArguments& given) {
  KnnArguments arguments = given;
  arguments.queries = choose_queries(session, given);
  check_search_output(session, arguments.output,
                      {arguments.base, arguments.queries, arguments.filter.filter, arguments.filter.exclude,
                       arguments.filter.exclude_per_query});
  const VectorFile base_file = open_vectors(arguments.base);
  const VectorFile query_file = open_vectors(arguments.queries);
  const RowsView base = base_file.rows();
  Provenance provenance = describe_run(session);
  provenance["base"] = describe_input(arguments.base, base);
  provenance["queries"] = describe_input(arguments.queries, query_file.rows());
  const RowsView queries = first_rows_of(query_file.rows(), arguments.limit_queries);
  check_shapes(session, arguments, queries, base);

  const KnnOptions options{.metric = arguments.metric,
                           .short_rows = arguments.pad ? ShortRows::pad : ShortRows::refuse,
                           .filter = read_filter(session, arguments.filter, queries.rows())};
  const Context context = open_context(arguments.context);
  Work work(session, context, "queries", queries.rows());
  const Stopwatch watch;
  Neighbors found = work.run_on_data([&](const Context& own) {
    return arguments.exclude_self ? exact_knn_graph(own, base, arguments.k, options)
                                  : knn(own, queries, base, arguments.k, options);
  });
  const double seconds = watch.seconds();
  Json more = {{"exclude_self", arguments.exclude_self}, {"base_rows", base.rows()}, {"dim", base.dim()}};
  more.update(describe_context(context));
  const Interrupt::Protection protection = session.interrupt->protect();
  return report_search(session,
                       {.output = arguments.output,
                        .metric = arguments.metric,
                        .seconds = seconds,
                        .searched = describe_base(arguments, base),
                        .more = std::move(more)},
                       std::move(provenance), std::move(found));
}

}  // namespace

void add_knn(CLI::App& parent, Session& session) {
  const auto [parser, arguments] = add_command(
      parent, session, run_knn, "knn", "Find exact nearest neighbours",
      "  nearwise knn base.fbin queries.fbin -k 10 --memory-limit 2GiB -o truth.nw\n"
      "  nearwise knn base.fbin --exclude-self -k 10 -o graph.nw\n\n"
      "A .nw keeps ids, distances, metric and provenance; .bin ids and distances; .ivecs, .ibin and\n"
      ".npy ids.");
  add_path(parser, "base", arguments.base, "Vectors to search: .npy .fbin .fvecs .u8bin ...")->required();
  add_path(parser, "queries", arguments.queries, "Query vectors");
  CLI::Option* const exclude_self = parser.add_flag("--exclude-self", arguments.exclude_self,
                                                    "Find the nearest other vectors of every base vector");
  add_count(parser, "-k", arguments.k, 1, "Neighbours per query");
  add_choice(parser, "--metric", arguments.metric, all_metrics, "Metric; inner_product: largest first");
  add_search_output(parser, arguments.output);
  parser.add_flag("--pad", arguments.pad, "If k exceeds the base, fill with id -1 instead of failing");
  add_filter_options(parser, arguments.filter);
  add_limit_queries(parser, arguments.limit_queries)->excludes(exclude_self);
  add_context_options(parser, arguments.context);
}

}  // namespace nearwise::cli
