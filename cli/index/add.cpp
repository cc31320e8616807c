// nearwise index add: more vectors in an index.
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "cli/commands.h"
#include "cli/index/index_file.h"
#include "cli/shared/command.h"
#include "cli/shared/context_options.h"
#include "cli/shared/files.h"

namespace nearwise::cli {
namespace {

struct AddArguments {
  std::filesystem::path index;
  std::filesystem::path vectors;
  std::filesystem::path output;
  std::filesystem::path ids;
  std::optional<std::size_t> first_id;
  ContextArguments context;
};

// Ids of the new vectors; none: the library numbers them.
std::vector<Id> choose_ids(const Session& session, const AddArguments& arguments, RowsView vectors) {
  std::vector<Id> ids;
  if (!arguments.ids.empty()) {
    ids = read_ids(arguments.ids);
    if (ids.size() != vectors.rows())
      refuse(session, "expected one id per vector, '{}' has {} ids and '{}' {} vectors",
             arguments.ids.string(), ids.size(), arguments.vectors.string(), vectors.rows());
  } else if (arguments.first_id) {
    constexpr auto largest = static_cast<std::size_t>(std::numeric_limits<Id>::max());
    if (*arguments.first_id > largest || vectors.rows() > largest - *arguments.first_id)
      refuse(session, "ids must be below {}, got --first-id {} for {} vectors", largest, *arguments.first_id,
             vectors.rows());
    ids.resize(vectors.rows());
    std::iota(ids.begin(), ids.end(), static_cast<Id>(*arguments.first_id));
  }
  return ids;
}

ExitCode run_add(Session& session, const AddArguments& arguments) {
  check_index_output(arguments.output);
  const Provenance run = describe_run(session);
  const VectorFile file = open_vectors(arguments.vectors);
  const RowsView vectors = file.rows();
  const Context context = open_context(arguments.context);
  Ivf index = open_index(context, arguments.index);
  check_dim(session, index, arguments.vectors, vectors);
  const std::vector<Id> ids = choose_ids(session, arguments, vectors);
  Work work(session, context, "vectors", vectors.rows());
  add_vectors(work, index, vectors, ids);
  save_index(session, index, run, arguments.output);
  return report_index(session, index, arguments.output, {{"added", vectors.rows()}},
                      fmt::format("{} added", vectors.rows()));
}

}  // namespace

void add_index_add(CLI::App& parent, Session& session) {
  const auto [parser, arguments] =
      add_command(parent, session, run_add, "add", "Add vectors to an index",
                  "  nearwise index add index.nw more.fbin -o index.nw\n"
                  "  nearwise index add trained.nw part2.fbin --first-id 1000000 -o part2.nw\n\n"
                  "Without --ids and --first-id, numbering continues after the largest id ever used.");
  add_path(parser, "index", arguments.index, "Index: .nw")->required();
  add_path(parser, "vectors", arguments.vectors, "Vectors: .npy .fbin .fvecs .u8bin ...")->required();
  add_output(parser, arguments.output, "Index to write: .nw, may be the input");
  CLI::Option* const ids = add_path(parser, "--ids", arguments.ids,
                                    "One id per vector: .npy .ivecs .ibin, or .txt with one per line");
  add_count(parser, "--first-id", arguments.first_id, 0, "Id of the first vector; the others follow in order")
      ->excludes(ids);
  add_context_options(parser, arguments.context);
}

}  // namespace nearwise::cli
