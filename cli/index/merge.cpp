// nearwise index merge: one index of several with the same training, from files to a file.
#include <vector>

#include "cli/commands.h"
#include "cli/index/index_file.h"
#include "cli/shared/command.h"
#include "cli/shared/context_options.h"

namespace nearwise::cli {
namespace {

struct MergeArguments {
  std::vector<std::filesystem::path> indexes;
  std::filesystem::path output;
  ContextArguments context;
};

ExitCode run_merge(Session& session, const MergeArguments& arguments) {
  if (arguments.indexes.size() < 2) refuse(session, "expected at least 2 indexes, got 1");
  check_index_output(arguments.output);
  const Provenance run = describe_run(session);
  std::uint64_t vectors = 0;
  for (const std::filesystem::path& index : arguments.indexes) vectors += count_vectors(index);
  const std::uint64_t merged = vectors - count_vectors(arguments.indexes.front());
  const Context context = open_context(arguments.context);
  Work work(session, context, "vectors", vectors);
  work.run([&](const Context& own) { merge_ivf_files(own, arguments.indexes, arguments.output, run); });
  return report_index(session, open_index(context, arguments.output), arguments.output, {{"merged", merged}},
                      fmt::format("{} merged", merged));
}

}  // namespace

void add_index_merge(CLI::App& parent, Session& session) {
  const auto [parser, arguments] =
      add_command(parent, session, run_merge, "merge", "Merge indexes that share one training",
                  "  nearwise index merge part1.nw part2.nw part3.nw -o index.nw\n\n"
                  "Make the parts by index build --train-only, then index add --first-id for each.");
  add_paths(parser, "indexes", arguments.indexes, "Indexes: .nw")->required();
  add_output(parser, arguments.output, "Index to write: .nw, may be one of the inputs");
  add_context_options(parser, arguments.context);
}

}  // namespace nearwise::cli
