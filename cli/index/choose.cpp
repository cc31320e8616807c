// nearwise index choose: which index suits the vectors of a file, and the command that builds it.
#include "cli/commands.h"
#include "cli/shared/command.h"
#include "cli/shared/files.h"
#include "cli/shared/session.h"
#include "cli/shared/text.h"
#include "cli/shared/work.h"
#include "nearwise/choose_index.h"

namespace nearwise::cli {
namespace {

struct ChooseArguments {
  std::filesystem::path base;
  Metric metric = Metric::sqeuclidean;
  double target_recall = 0.95;
  QueryPattern queries = QueryPattern::single;
  std::size_t expected_queries = IndexRequest().expected_queries;
  ContextArguments context;
};

std::string command_of(const IndexEstimate& estimate, const ChooseArguments& arguments) {
  const std::string base = quote(arguments.base.string());
  if (estimate.kind == IndexKind::exact)
    return fmt::format("nearwise knn {} QUERIES --metric {}", base, name(arguments.metric));
  std::string options;
  if (estimate.kind == IndexKind::graph) options = "--kind graph";
  if (estimate.kind == IndexKind::ivf_flat) options = "--codec flat";
  if (estimate.kind == IndexKind::ivf_pq)
    options = fmt::format("--codec pq --vectors {}", name(estimate.vectors));
  return fmt::format("nearwise index build {} {} --metric {} --target-recall {} -o index.nw", base, options,
                     name(arguments.metric), arguments.target_recall);
}

ExitCode run_choose(Session& session, const ChooseArguments& arguments) {
  const VectorFile file = open_vectors(arguments.base);
  const Context context = open_context(arguments.context);
  const IndexChoice choice = choose_index(context, {.rows = file.rows().rows(),
                                                    .dim = file.rows().dim(),
                                                    .element_type = file.rows().type(),
                                                    .metric = arguments.metric,
                                                    .target_recall = arguments.target_recall,
                                                    .queries = arguments.queries,
                                                    .expected_queries = arguments.expected_queries});
  Json estimates = Json::array();
  for (const IndexEstimate& estimate : choice.estimates)
    estimates.push_back({{"kind", name(estimate.kind)},
                         {"vectors", name(estimate.vectors)},
                         {"bytes", estimate.bytes},
                         {"build_bytes", estimate.build_bytes},
                         {"build_seconds", estimate.build_seconds},
                         {"query_seconds", estimate.query_seconds},
                         {"total_seconds", estimate.total_seconds},
                         {"fits", estimate.fits}});
  const std::string command = command_of(choice.chosen(), arguments);
  if (session.json)
    print(Json{{"kind", name(choice.chosen().kind)},
               {"reason", choice.reason},
               {"command", command},
               {"estimates", estimates}});
  else
    print(fmt::format("{}\n{}\n{}\n", choice.reason, choice.table(), command));
  return ExitCode::ok;
}

}  // namespace

void add_index_choose(CLI::App& parent, Session& session) {
  const auto [parser, arguments] =
      add_command(parent, session, run_choose, "choose", "Choose the kind of index for the vectors of a file",
                  "  nearwise index choose base.fbin --queries batch --memory-limit 2GiB\n\n"
                  "Prints estimates for every kind, to compare them, and the command that builds the one "
                  "chosen.");
  add_path(parser, "base", arguments.base, "Vectors: .npy .fbin .fvecs .u8bin ...")->required();
  add_choice(parser, "--metric", arguments.metric, all_metrics, "Metric; inner_product: largest first");
  add_target_recall(parser, arguments.target_recall, "Recall@10 of searches; 1: exact");
  add_choice(parser, "--queries", arguments.queries, {QueryPattern::single, QueryPattern::batch},
             "One at a time, so that latency counts, or thousands in a call");
  add_count(parser, "--expected-queries", arguments.expected_queries, 0,
            "Over the life of the index; few queries do not pay for building one");
  add_context_options(parser, arguments.context);
}

}  // namespace nearwise::cli
