// nearwise index search: approximate nearest neighbours of the vectors of a file.
#include <algorithm>
#include <functional>
#include <memory>
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
#include "nearwise/graph_index.h"

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
  std::optional<std::size_t> beam;
  std::optional<std::size_t> limit_queries;
  FilterArguments filter;
  ContextArguments context;
};

// An answer does not depend on its batch; batches are for progress.
constexpr std::size_t batch_queries = 16384;

void check_arguments(const Session& session, const SearchArguments& arguments, const Ivf& index,
                     RowsView queries, RowsView vectors) {
  check_dim(session, index.dim(), arguments.queries, queries);
  if (arguments.beam)
    refuse(session, "--beam is for graph indexes, '{}' is not one", arguments.index.string());
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

void check_arguments(const Session& session, const SearchArguments& arguments, const GraphIndex& index,
                     RowsView queries) {
  check_dim(session, index.dim(), arguments.queries, queries);
  const std::pair<bool, const char*> others[] = {{arguments.probes.has_value(), "--probes"},
                                                 {arguments.candidates.has_value(), "--candidates"},
                                                 {arguments.codes_only, "--codes-only"},
                                                 {!arguments.rerank.empty(), "--rerank"}};
  for (const auto& [is_given, option] : others)
    if (is_given)
      refuse(session, "{} is for inverted files, '{}' is a graph index", option, arguments.index.string());
  if (arguments.beam && *arguments.beam < arguments.k)
    refuse(session, "--beam must be at least k = {}, got {}", arguments.k, *arguments.beam);
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

// options: those of the index's kind.
template <typename Index>
Neighbors search(Work& work, const Index& index, RowsView queries, std::size_t k, const Filter& filter,
                 typename Index::SearchOptions options) {
  Neighbors all{Matrix<Id>(queries.rows(), k), Matrix<float>(queries.rows(), k)};
  work.run_batches(queries, batch_queries, [&](const Context& context, RowsView batch, std::size_t first) {
    options.filter = filter.queries() ? filter.from_query(first, batch.rows()) : filter;
    const Neighbors found = blame_data([&] { return index.search(context, batch, k, options); });
    std::copy_n(found.ids.data(), batch.rows() * k, all.ids.data() + first * k);
    std::copy_n(found.distances.data(), batch.rows() * k, all.distances.data() + first * k);
  });
  return all;
}

// An opened index of either kind, and what is said of its search.
struct Searched {
  std::function<Neighbors(Work&, const Filter&)> search;
  std::function<void()> remark = [] {};  // on its recall
  Metric metric = Metric::sqeuclidean;
  std::string content;  // for provenance
  std::string sentence;
  Json more;
};

Searched open_ivf(const Session& session, const SearchArguments& arguments, const Context& context,
                  RowsView queries, RowsView vectors) {
  const auto index = std::make_shared<const Ivf>(open_inverted_file(context, arguments.index));
  check_arguments(session, arguments, *index, queries, vectors);
  const std::size_t probes = arguments.probes.value_or(index->probes(arguments.k));
  return {.search =
              [&arguments, index, queries, vectors](Work& work, const Filter& filter) {
                return search(work, *index, queries, arguments.k, filter,
                              {.probes = arguments.probes,
                               .codes_only = arguments.codes_only,
                               .rerank = vectors,
                               .candidates = arguments.candidates});
              },
          .remark =
              [&session, &arguments, index] {
                if (!arguments.probes) remark_on_recall(session, *index, arguments.k, arguments.codes_only);
              },
          .metric = index->metric(),
          .content = fmt::format("{} vectors in {} lists", index->size(), index->lists()),
          .sentence = fmt::format("{} vectors, {} of {} lists probed", index->size(), probes, index->lists()),
          .more = {{"probes", probes},
                   {"lists", index->lists()},
                   {"index_rows", index->size()},
                   {"dim", index->dim()},
                   {"rerank", vectors.rows() != 0 || (index->vector_bytes() != 0 && !arguments.codes_only)}}};
}

Searched open_graph(const Session& session, const SearchArguments& arguments, const Context& context,
                    RowsView queries) {
  const auto index = std::make_shared<const GraphIndex>(load_graph_index(context, arguments.index));
  check_arguments(session, arguments, *index, queries);
  const std::size_t beam = arguments.beam.value_or(index->beam(arguments.k));
  return {
      .search =
          [&arguments, index, queries](Work& work, const Filter& filter) {
            return search(work, *index, queries, arguments.k, filter, {.beam = arguments.beam});
          },
      .metric = index->metric(),
      .content = fmt::format("{} vectors with {} edges each", index->size(), index->degree()),
      .sentence = fmt::format("{} vectors, a beam of {}", index->size(), beam),
      .more = {
          {"beam", beam}, {"degree", index->degree()}, {"index_rows", index->size()}, {"dim", index->dim()}}};
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
  const bool is_graph = inspect_as(arguments.index, "an index", {"ivf", "graph_index"}).kind == "graph_index";
  Searched index = is_graph ? open_graph(session, arguments, context, queries)
                            : open_ivf(session, arguments, context, queries, vectors);
  provenance["index"] = fmt::format("{}, {} bytes, {}", arguments.index.string(),
                                    std::filesystem::file_size(arguments.index), index.content);

  const Filter filter = read_filter(session, arguments.filter, queries.rows());
  Work work(session, context, "queries", queries.rows());
  const Stopwatch watch;
  Neighbors found = index.search(work, filter);
  const double seconds = watch.seconds();
  index.remark();
  index.more.update(describe_context(context));
  const Interrupt::Protection protection = session.interrupt->protect();
  return report_search(session,
                       {.output = arguments.output,
                        .metric = index.metric,
                        .seconds = seconds,
                        .searched = index.sentence,
                        .more = std::move(index.more)},
                       std::move(provenance), std::move(found));
}

}  // namespace

void add_index_search(CLI::App& parent, Session& session) {
  const auto [parser, arguments] = add_command(
      parent, session, run_search, "search", "Find approximate nearest neighbours with an index",
      "  nearwise index search index.nw queries.fbin -k 10 --probes 32 -o found.nw\n"
      "  nearwise index search index.nw queries.fbin -k 10 --candidates 200 -o found.nw\n\n"
      "The best candidates by code are re-ranked with the vectors that the index keeps.\n"
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
  add_count(parser, "--beam", arguments.beam, 1,
            "Width of the beam of a graph index, at least k (default: calibrated)");
  add_search_output(parser, arguments.output);
  add_filter_options(parser, arguments.filter);
  add_limit_queries(parser, arguments.limit_queries);
  add_context_options(parser, arguments.context);
}

}  // namespace nearwise::cli
