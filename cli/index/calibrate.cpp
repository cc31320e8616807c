// nearwise index calibrate: the default probes and candidates of an index, for a target recall.
#include "cli/commands.h"
#include "cli/index/index_file.h"
#include "cli/shared/command.h"
#include "cli/shared/context_options.h"
#include "cli/shared/files.h"

namespace nearwise::cli {
namespace {

struct CalibrateArguments {
  std::filesystem::path index;
  std::filesystem::path vectors;
  std::filesystem::path output;
  double target_recall = 0.9;
  std::size_t queries = 500;
  std::size_t seed = 0;
  bool no_rerank = false;
  ContextArguments context;
};

ExitCode run_calibrate(Session& session, const CalibrateArguments& arguments) {
  check_index_output(arguments.output);
  const Provenance run = describe_run(session);
  const VectorFile file = open_vectors(arguments.vectors);
  const Context context = open_context(arguments.context, arguments.seed);
  Ivf index = open_index(context, arguments.index);
  check_vectors_by_id(session, index, arguments.vectors, file.rows());
  if (index.size() < 2)
    refuse(session, "the index must have at least 2 vectors, '{}' has {}", arguments.index.string(),
           index.size());
  Work work(session, context, "vectors", index.size());
  work.run_on_data([&](const Context& own) {
    index.calibrate(
        own, file.rows(),
        {.recall = arguments.target_recall, .queries = arguments.queries, .rerank = !arguments.no_rerank});
  });
  save_index(session, index, run, arguments.output);
  return report_index(session, index, arguments.output, Json::object(),
                      fmt::format("searches probe {} lists by default", index.probes()));
}

}  // namespace

void add_index_calibrate(CLI::App& parent, Session& session) {
  const auto [parser, arguments] = add_command(
      parent, session, run_calibrate, "calibrate",
      "Choose the default probes and candidates of an index for a target recall",
      "  nearwise index calibrate index.nw base.fbin --target-recall 0.95 -o index.nw\n\n"
      "Sets the cheapest defaults that reach the target on vectors of the index, compared with exact "
      "search;\n"
      "no vector counts as its own neighbour. index build calibrates; repeat it after many additions.");
  add_path(parser, "index", arguments.index, "Index: .nw")->required();
  add_path(parser, "vectors", arguments.vectors, "Vectors of the index, by id: .npy .fbin ...")->required();
  add_output(parser, arguments.output, "Index to write: .nw, may be the input");
  add_target_recall(parser, arguments.target_recall, "Recall@10 to reach");
  add_count(parser, "--queries", arguments.queries, 1,
            "Vectors of the index used as queries, drawn at random");
  parser.add_flag("--no-rerank", arguments.no_rerank, "Calibrate for searches without --rerank");
  add_seed(parser, arguments.seed);
  add_context_options(parser, arguments.context);
}

}  // namespace nearwise::cli
