#include "cli/graph/update.h"

#include <cstring>

#include "cli/shared/command.h"
#include "cli/shared/files.h"

namespace nearwise::cli {

void add_graph_update_options(CLI::App& parser, GraphUpdateArguments& arguments,
                              const std::string& vectors_description) {
  add_paths(parser, "vectors", arguments.vectors, vectors_description)->required();
  add_output(parser, arguments.output, "Graph to write: .nw, may be an input");
  add_target_recall(parser, arguments.target_recall,
                    "Recall to reach, measured on a sample; 1: exact search");
  add_seed(parser, arguments.seed);
  add_context_options(parser, arguments.context);
}

ConcatenatedVectors::ConcatenatedVectors(const Session& session,
                                         const std::vector<std::filesystem::path>& paths) {
  std::size_t count = 0;
  for (const std::filesystem::path& path : paths) {
    files_.push_back(open_vectors(path));
    const RowsView rows = files_.back().rows();
    const RowsView first = files_.front().rows();
    if (rows.dim() != first.dim() || rows.type() != first.type())
      refuse(session, "vectors must have the same dimension and type, '{}' has {} {} and '{}' {} {}",
             paths.front().string(), first.dim(), name(first.type()), path.string(), rows.dim(),
             name(rows.type()));
    count += rows.rows();
  }
  rows_ = files_.front().rows();
  if (files_.size() == 1) return;
  const std::size_t row_bytes = rows_.dim() * element_size(rows_.type());
  copy_ = Matrix<std::byte>(count, row_bytes);
  std::size_t next = 0;
  for (const VectorFile& file : files_)
    for (std::size_t row = 0; row < file.rows().rows(); ++row)
      std::memcpy(copy_.row(next++).data(), file.rows().row(row), row_bytes);
  rows_ = RowsView(copy_.data(), rows_.type(), count, rows_.dim(), row_bytes);
}

std::string ConcatenatedVectors::describe() const {
  std::string text;
  for (const VectorFile& file : files_)
    text += (text.empty() ? "" : "; ") + describe_input(file.path(), file.rows());
  return text;
}

ExitCode run_graph_update(Session& session, const GraphUpdateArguments& arguments, ExpectedVectors expected,
                          const GraphUpdate& update) {
  require_container(arguments.output, "a graph");
  for (const std::filesystem::path& path : arguments.vectors) check_output(session, arguments.output, {path});
  const ConcatenatedVectors vectors(session, arguments.vectors);
  const std::size_t count = vectors.rows().rows();
  if (expected.or_more ? count < expected.count : count != expected.count)
    refuse(session, "expected {}{} vectors, those of the graph{}, got {}",
           expected.or_more ? "at least " : "", expected.count, expected.or_more ? " and the new ones" : "",
           count);
  Provenance provenance = describe_run(session);
  provenance["base"] = vectors.describe();
  const Context context = open_context(arguments.context, arguments.seed);
  return make_graph({.session = session,
                     .context = context,
                     .vectors = vectors.rows(),
                     .output = arguments.output,
                     .target_recall = arguments.target_recall,
                     .seed = arguments.seed,
                     .provenance = provenance},
                    [&](const Context& own, const OnRound& on_round) {
                      return update(own, vectors.rows(),
                                    {.target_recall = arguments.target_recall, .on_round = on_round});
                    });
}

}  // namespace nearwise::cli
