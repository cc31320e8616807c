// nearwise index search: approximate nearest neighbours of the vectors of a file.
#include <algorithm>
#include <optional>
#include <utility>

#include "cli/commands.h"
#include "cli/index/index_file.h"
#include "cli/shared/command.h"
#include "cli/shared/files.h"
#include "cli/shared/filter_file.h"
#include "cli/shared/search_report.h"
#include "cli/shared/text.h"
#include "cli/shared/work.h"

namespace nearwise::cli {
namespace {

struct SearchArguments {
  std::filesystem::path index;
  std::filesystem::path queries;
  bool codes_only = false;
  std::filesystem::path rerank;  // empty: by the vectors that the index keeps
  std::filesystem::path output;  // empty: the first answers are printed
  std::size_t k = 10;
  std::optional<std::size_t> probes;
  std::optional<std::size_t> candidates;
  std::optional<std::size_t> limit_queries;
  FilterArguments filter;
  ContextArguments context;
};

// An answer does not depend on its batch; batches are for progress.
constexpr std::size_t batch_queries = 16384;

void check_arguments(const Session& session, const SearchArguments& arguments, const Ivf& index,
                     RowsView queries, RowsView vectors) {
  check_dim(session, index, arguments.queries, queries);
  if (arguments.probes && *arguments.probes > index.lists())
    refuse(session, "--probes must be at most the {} lists of '{}', got {}", index.lists(),
           arguments.index.string(), *arguments.probes);
  if (arguments.candidates && *arguments.candidates < arguments.k)
    refuse(session, "--candidates must be at least k = {}, got {}", arguments.k, *arguments.candidates);
  if (arguments.candidates && arguments.rerank.empty() && index.vector_bytes() == 0)
    refuse(session, "--candidates needs vectors to re-rank by: '{}' keeps none, and there is no --rerank",
           arguments.index.string());
  if (!arguments.rerank.empty()) check_vectors_by_id(session, index, arguments.rerank, vectors);
}

// The memory limit of the search: --memory-limit less the answers.
ContextArguments without_answers(const Session& session, const SearchArguments& arguments,
                                 std::size_t queries) {
  ContextArguments context = arguments.context;
  if (context.memory_limit == 0) return context;
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(queries, arguments.k, &bytes) ||
      __builtin_mul_overflow(bytes, sizeof(Id) + sizeof(float), &bytes) || bytes >= context.memory_limit)
    throw Error(ErrorCode::out_of_memory,
                fmt::format("{}: the answers of {} queries with k = {} exceed --memory-limit {}",
                            session.command, queries, arguments.k, format_bytes(context.memory_limit)));
  context.memory_limit -= bytes;
  return context;
}

Neighbors search(Work& work, const SearchArguments& arguments, const Ivf& index, RowsView queries,
                 RowsView vectors, const Filter& filter) {
  const std::size_t k = arguments.k;
  IvfSearchOptions options{.probes = arguments.probes,
                           .codes_only = arguments.codes_only,
                           .rerank = vectors,
                           .candidates = arguments.candidates};
  Neighbors all{Matrix<Id>(queries.rows(), k), Matrix<float>(queries.rows(), k)};
  work.run_batches(queries, batch_queries, [&](const Context& context, RowsView batch, std::size_t first) {
    options.filter = filter.queries() ? filter.from_query(first, batch.rows()) : filter;
    const Neighbors found = blame_data([&] { return index.search(context, batch, k, options); });
    std::copy_n(found.ids.data(), batch.rows() * k, all.ids.data() + first * k);
    std::copy_n(found.distances.data(), batch.rows() * k, all.distances.data() + first * k);
  });
  return all;
}

ExitCode run_search(Session& session, const SearchArguments& arguments) {
  check_search_output(session, arguments.output,
                      {arguments.index, arguments.queries, arguments.rerank, arguments.filter.filter,
                       arguments.filter.exclude, arguments.filter.exclude_per_query});
  const VectorFile query_file = open_vectors(arguments.queries);
  std::optional<VectorFile> vector_file;
  if (!arguments.rerank.empty()) vector_file.emplace(open_vectors(arguments.rerank));
  const RowsView vectors = vector_file ? vector_file->rows() : RowsView();
  Provenance provenance = describe_run(session);
  provenance["queries"] = describe_input(arguments.queries, query_file.rows());
  if (vector_file) provenance["base"] = describe_input(arguments.rerank, vectors);
  const RowsView queries = first_rows_of(query_file.rows(), arguments.limit_queries);

  const Context context = open_context(without_answers(session, arguments, queries.rows()));
  const Ivf index = open_index(context, arguments.index);
  check_arguments(session, arguments, index, queries, vectors);
  provenance["index"] = fmt::format("{}, {} bytes, {} vectors in {} lists", arguments.index.string(),
                                    std::filesystem::file_size(arguments.index), index.size(), index.lists());

  const Filter filter = read_filter(session, arguments.filter, queries.rows());
  Work work(session, context, "queries", queries.rows());
  const Stopwatch watch;
  Neighbors found = search(work, arguments, index, queries, vectors, filter);
  const double seconds = watch.seconds();
  const std::size_t probes = arguments.probes.value_or(index.probes(arguments.k));
  if (!arguments.probes) remark_on_recall(session, index, arguments.k, arguments.codes_only);
  Json more = {{"probes", probes},
               {"lists", index.lists()},
               {"index_rows", index.size()},
               {"dim", index.dim()},
               {"rerank", vector_file || (index.vector_bytes() != 0 && !arguments.codes_only)}};
  more.update(describe_context(context));
  const Interrupt::Protection protection = session.interrupt->protect();
  return report_search(
      session,
      {.output = arguments.output,
       .metric = index.metric(),
       .seconds = seconds,
       .searched = fmt::format("{} vectors, {} of {} lists probed", index.size(), probes, index.lists()),
       .more = std::move(more)},
      std::move(provenance), std::move(found));
}

}  // namespace

void add_index_search(CLI::App& parent, Session& session) {
  const auto [parser, arguments] = add_command(
      parent, session, run_search, "search", "Find approximate nearest neighbours with an index",
      "  nearwise index search index.nw queries.fbin -k 10 --probes 32 -o found.nw\n"
      "  nearwise index search index.nw queries.fbin -k 10 --candidates 200 -o found.nw\n\n"
      "The best candidates by their codes are re-ranked by the vectors that the index keeps.\n"
      "nearwise eval found.nw truth.nw measures the recall against exact neighbours of nearwise knn.");
  add_path(parser, "index", arguments.index, "Index: .nw")->required();
  add_path(parser, "queries", arguments.queries, "Query vectors: .npy .fbin .fvecs ...")->required();
  add_count(parser, "-k", arguments.k, 1, "Neighbours per query");
  add_count(parser, "--probes", arguments.probes, 1, "Lists to probe (default: calibrated)");
  CLI::Option* const codes_only =
      parser.add_flag("--codes-only", arguments.codes_only, "Search by codes alone, without re-ranking");
  add_path(parser, "--rerank", arguments.rerank, "Vectors by id to re-rank by, instead of those of the index")
      ->excludes(codes_only);
  add_count(parser, "--candidates", arguments.candidates, 1,
            "Candidates to re-rank, at least k (default: calibrated)")
      ->excludes(codes_only);
  add_search_output(parser, arguments.output);
  add_filter_options(parser, arguments.filter);
  add_limit_queries(parser, arguments.limit_queries);
  add_context_options(parser, arguments.context);
}

}  // namespace nearwise::cli
