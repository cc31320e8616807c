// nearwise index remove: an index without the vectors of some ids.
#include <vector>

#include "cli/commands.h"
#include "cli/index/index_file.h"
#include "cli/shared/command.h"
#include "cli/shared/context_options.h"
#include "cli/shared/files.h"

namespace nearwise::cli {
namespace {

struct RemoveArguments {
  std::filesystem::path index;
  std::filesystem::path ids;
  std::filesystem::path output;
  ContextArguments context;
};

ExitCode run_remove(Session& session, const RemoveArguments& arguments) {
  check_index_output(arguments.output);
  const Provenance run = describe_run(session);
  const std::vector<Id> ids = read_ids(arguments.ids);
  const Context context = open_context(arguments.context);
  Ivf index = open_index(context, arguments.index);
  Work work(session, context, "vectors", index.size());
  const std::size_t removed = work.run([&](const Context& own) { return index.remove(own, ids); });
  save_index(session, index, run, arguments.output);
  return report_index(session, index, arguments.output, {{"removed", removed}},
                      fmt::format("{} removed", removed));
}

}  // namespace

void add_index_remove(CLI::App& parent, Session& session) {
  const auto [parser, arguments] =
      add_command(parent, session, run_remove, "remove", "Remove vectors from an index by their ids",
                  "  nearwise index remove index.nw ids.txt -o index.nw\n\n"
                  "Ids that the index does not have are ignored.");
  add_path(parser, "index", arguments.index, "Index: .nw")->required();
  add_path(parser, "ids", arguments.ids, "Ids to remove: .npy .ivecs .ibin, or .txt with one per line")
      ->required();
  add_output(parser, arguments.output, "Index to write: .nw, may be the input");
  add_context_options(parser, arguments.context);
}

}  // namespace nearwise::cli
