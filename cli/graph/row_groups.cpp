#include "cli/graph/row_groups.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "cli/shared/command.h"
#include "cli/shared/files.h"
#include "cli/shared/output.h"
#include "nearwise/vector_file.h"

namespace nearwise::cli {
namespace {

constexpr std::size_t groups_shown = 10;

}  // namespace

void add_labels_output(CLI::App& parser, std::filesystem::path& output) {
  add_output(parser, output, "Write the group of every vector, -1 for none: .npy, .ivecs or .ibin")
      ->required(false);
}

void check_labels_output(const Session& session, const std::filesystem::path& output,
                         const std::filesystem::path& graph) {
  if (output.empty()) return;
  require_suffix_for(Content::neighbors, output);
  if (output.extension() == ".nw" || output.extension() == ".bin")
    refuse(session, "labels must go to .npy, .ivecs or .ibin, got '{}'", output.string());
  check_output(session, output, {graph});
}

ExitCode report_groups(const Session& session, const KnnGraph& graph, const RowGroups& groups,
                       const std::filesystem::path& output, const std::string& noun, const Json& more) {
  session.interrupt->check();
  if (!output.empty()) {
    Neighbors labels = {Matrix<Id>(groups.labels.size(), 1), {}};
    std::ranges::copy(groups.labels, labels.ids.data());
    const Interrupt::Protection protection = session.interrupt->protect();
    write_neighbors(output, labels);
  }
  std::vector<std::size_t> sizes = groups.sizes;
  std::ranges::sort(sizes, std::greater<>());
  const std::size_t grouped = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
  sizes.resize(std::min(sizes.size(), groups_shown));
  if (session.json) {
    Json json = {{"rows", graph.rows()},
                 {"metric", name(graph.metric)},
                 {"groups", groups.sizes.size()},
                 {"rows_in_groups", grouped},
                 {"largest", sizes}};
    json.update(more);
    if (!output.empty()) json["output"] = output.string();
    print(json);
  } else {
    print(fmt::format("{} {}, {} of {} vectors, the largest: {}\n", groups.sizes.size(), noun, grouped,
                      graph.rows(), fmt::join(sizes, " ")));
  }
  return ExitCode::ok;
}

}  // namespace nearwise::cli
