// nearwise graph merge, add, remove: a graph with other rows.
#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cli/graph/graph_report.h"
#include "cli/shared/files.h"
#include "cli/shared/index_file.h"
#include "cli/shared/machine_options.h"
#include "cli/shared/progress_bar.h"
#include "cli/shared/session.h"
#include "nearwise/knn_graph.h"
#include "nearwise/vector_file.h"

namespace nearwise::cli {
namespace {

struct GraphChangeArguments {
  std::filesystem::path graph;
  std::filesystem::path other;         // merge
  std::filesystem::path ids;           // remove
  std::vector<std::string> row_files;  // one after the other
  std::filesystem::path output;
  double recall = 0.95;
  std::size_t seed = 0;
  MachineArguments machine;
};

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::invalid_argument, message); }

// The rows of several files, one after the other: one file is mapped, more are read into memory.
class RowFiles {
 public:
  RowFiles(const std::string& command, const std::vector<std::string>& paths) {
    std::size_t count = 0;
    for (const std::string& path : paths) {
      files_.push_back(open_vectors(path));
      const RowsView rows = files_.back().rows();
      const RowsView first = files_.front().rows();
      if (rows.dim() != first.dim() || rows.type() != first.type())
        refuse(fmt::format("{}: rows of one shape expected, '{}' has {} x {} and '{}' {} x {}", command,
                           paths.front(), first.dim(), name(first.type()), path, rows.dim(),
                           name(rows.type())));
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

  const RowsView& rows() const { return rows_; }
  void describe(Provenance& provenance) const {
    std::string text;
    for (const VectorFile& file : files_)
      text += (text.empty() ? "" : "; ") + describe_input(file.path(), file.rows());
    provenance["base"] = text;
  }

 private:
  std::vector<VectorFile> files_;
  Matrix<std::byte> copy_;
  RowsView rows_;
};

using Change = std::function<KnnGraph(const Context&, const RowsView&, const KnnGraphChangeOptions&)>;

ExitCode run_change(Session& session, const GraphChangeArguments& arguments, const std::string& command,
                    const RowFiles& files, const Change& change) {
  Provenance provenance = describe_run(session);
  files.describe(provenance);
  ProgressBar bar(choose_progress_style(session.quiet), command, "rows", files.rows().rows());
  const Context context = open_context(arguments.machine, bar, arguments.seed);
  const GraphRun run = {.session = session,
                        .output = arguments.output,
                        .recall = arguments.recall,
                        .seed = arguments.seed,
                        .machine = arguments.machine};
  KnnGraph graph;
  {
    const Interrupt::Protection protection = session.interrupt->protect([&context] { context.cancel(); });
    graph = blame_data([&] {
      return change(context, files.rows(),
                    {.target_recall = arguments.recall, .on_round = tell_rounds(run, bar)});
    });
  }
  bar.finish();
  session.interrupt->check();
  if (graph.rows() == 0) refuse(fmt::format("{}: no row would be left", command));
  return finish_graph(run, context, files.rows().dim(), graph, provenance);
}

// The output may be a graph that was read: it is replaced when it is complete.
void check(const GraphChangeArguments& arguments, const std::string& command) {
  check_graph_arguments(command, arguments.recall, arguments.output);
  for (const std::string& path : arguments.row_files) check_output(command, arguments.output, {path});
}

void check_count(const std::string& command, const std::string& graphs, std::size_t expected,
                 std::size_t given, bool or_more = false) {
  if (or_more ? given < expected : given != expected)
    refuse(fmt::format("{}: {} {} {} rows, the files of rows have {}", command, graphs,
                       graphs.ends_with('s') ? "have" : "has", expected, given));
}

ExitCode run_merge(Session& session, const GraphChangeArguments& arguments) {
  const std::string command = "graph merge";
  check(arguments, command);
  const RowFiles files(command, arguments.row_files);
  const KnnGraph left = open_graph(arguments.graph);
  const KnnGraph right = open_graph(arguments.other);
  check_count(command, "both graphs", left.rows() + right.rows(), files.rows().rows());
  return run_change(session, arguments, command, files,
                    [&](const Context& context, const RowsView& rows, const KnnGraphChangeOptions& options) {
                      return merge_knn_graphs(context, rows, left, right, options);
                    });
}

ExitCode run_add(Session& session, const GraphChangeArguments& arguments) {
  const std::string command = "graph add";
  check(arguments, command);
  const RowFiles files(command, arguments.row_files);
  const KnnGraph graph = open_graph(arguments.graph);
  check_count(command, "the graph", graph.rows(), files.rows().rows(), true);
  return run_change(session, arguments, command, files,
                    [&](const Context& context, const RowsView& rows, const KnnGraphChangeOptions& options) {
                      return add_to_knn_graph(context, rows, graph, options);
                    });
}

ExitCode run_remove(Session& session, const GraphChangeArguments& arguments) {
  const std::string command = "graph remove";
  check(arguments, command);
  const RowFiles files(command, arguments.row_files);
  const std::vector<Id> ids = read_ids(arguments.ids);
  const KnnGraph graph = open_graph(arguments.graph);
  check_count(command, "the graph", graph.rows(), files.rows().rows());
  return run_change(session, arguments, command, files,
                    [&](const Context& context, const RowsView& rows, const KnnGraphChangeOptions& options) {
                      return remove_from_knn_graph(context, rows, graph, ids, options);
                    });
}

using Run = ExitCode (*)(Session& session, const GraphChangeArguments& arguments);

// Files of rows, --output, --recall, --seed, and the options of the machine.
void add_common(CLI::App& command, Session& session, const std::shared_ptr<GraphChangeArguments>& arguments,
                const std::string& rows_help, Run run) {
  command.add_option("rows", arguments->row_files, rows_help)->type_name("FILE")->required();
  add_path(command, "-o,--output", arguments->output, "Where the graph goes: .nw, also one that is read")
      ->required();
  add_number(command, "--recall", arguments->recall,
             "The share of true neighbours that the graph must hold; 1: exact (0.95)");
  add_count(command, "--seed", arguments->seed, 0, "Of the random numbers (0)");
  add_machine_options(command, arguments->machine);
  command.callback([&session, arguments, run] {
    session.run = [&session, arguments, run] { return run(session, *arguments); };
  });
}

}  // namespace

void add_changes_of_graph(CLI::App& app, Session& session) {
  {
    auto arguments = std::make_shared<GraphChangeArguments>();
    CLI::App* const command =
        add_command(app, session, "merge", "Merge the graphs of two sets of rows",
                    "  nearwise graph merge left.nw right.nw left.fbin right.fbin --output all.nw\n\n"
                    "Ids of the second graph are increased by the rows of the first.");
    add_path(*command, "left", arguments->graph, "The graph of the first rows: .nw")->required();
    add_path(*command, "right", arguments->other, "The graph of the others: .nw")->required();
    add_common(*command, session, arguments,
               "Vectors of both, the first graph's first, in one file or several", run_merge);
  }
  {
    auto arguments = std::make_shared<GraphChangeArguments>();
    CLI::App* const command =
        add_command(app, session, "add", "Add rows to a graph",
                    "  nearwise graph add graph.nw base.fbin more.fbin --output graph.nw\n\n"
                    "New rows are numbered from the number of rows that the graph has.");
    add_path(*command, "graph", arguments->graph, "The graph: .nw")->required();
    add_common(*command, session, arguments,
               "Its vectors and then those that are new, in one file or several", run_add);
  }
  {
    auto arguments = std::make_shared<GraphChangeArguments>();
    CLI::App* const command =
        add_command(app, session, "remove", "Remove rows from a graph",
                    "  nearwise graph remove graph.nw base.fbin --ids gone.txt --output smaller.nw\n\n"
                    "The rows that are left keep their order and are numbered from 0 again.");
    add_path(*command, "graph", arguments->graph, "The graph: .nw")->required();
    add_path(*command, "--ids", arguments->ids,
             "Row numbers that go: .npy .ivecs .ibin, or .txt with one in every line")
        ->required();
    add_common(*command, session, arguments, "All its vectors, in one file or several", run_remove);
  }
}

}  // namespace nearwise::cli
