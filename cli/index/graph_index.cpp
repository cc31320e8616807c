// nearwise index build --kind graph, and index export: search graphs.
#include <optional>
#include <utility>

#include "cli/commands.h"
#include "cli/index/build_options.h"
#include "cli/index/index_file.h"
#include "cli/shared/command.h"
#include "cli/shared/files.h"
#include "cli/shared/search_report.h"
#include "nearwise/graph_index.h"
#include "nearwise/graph_index_export.h"

namespace nearwise::cli {
namespace {

Json describe_calibration(const GraphIndex& index) {
  const std::optional<GraphCalibration> found = index.calibration();
  if (!found) return nullptr;
  const GraphCalibration& measured = *found;
  return {{"recall", to_json(measured.recall)},
          {"beam_of_100", measured.beam_of_100},
          {"recall_of_100", to_json(measured.recall_of_100)},
          {"target_recall", measured.target_recall},
          {"reached", measured.reached()},
          {"neighbors", measured.neighbors}};
}

std::string summarize_calibration(const GraphCalibration& measured) {
  const std::string found = fmt::format(
      "recall@{} {:.3f} ({:.3f} to {:.3f}) with a beam of {}, {} sample queries", measured.neighbors,
      measured.recall.value, measured.recall.low, measured.recall.high, measured.beam, measured.recall.rows);
  return measured.reached()
             ? found
             : fmt::format("warning: target recall {} is not reached: {}", measured.target_recall, found);
}

struct ExportArguments {
  std::filesystem::path index;
  std::filesystem::path output;
  std::string library = "hnswlib";
  ContextArguments context;
};

ExitCode run_export(Session& session, const ExportArguments& arguments) {
  check_output(session, arguments.output, {arguments.index});
  inspect_as(arguments.index, "a graph index", {"graph_index"});
  const Context context = open_context(arguments.context);
  GraphIndex index = load_graph_index(context, arguments.index);
  Work work(session, context);
  work.run([&](const Context& own) {
    if (arguments.library != "hnswlib") index.compact(own);  // they have no mark for removed vectors
    (arguments.library == "svs"       ? export_svs
     : arguments.library == "diskann" ? export_diskann
                                      : export_hnswlib)(own, index, arguments.output);
  });
  conclude(session,
           {{"rows", index.size()},
            {"dim", index.dim()},
            {"metric", name(index.metric())},
            {"library", arguments.library},
            {"output", arguments.output.string()}},
           fmt::format("wrote {} vectors of {} dimensions for {} to {}", index.size(), index.dim(),
                       arguments.library, arguments.output.string()));
  return ExitCode::ok;
}

}  // namespace

void check_graph_index_build(const Session& session, const IndexBuildArguments& arguments) {
  const std::pair<bool, const char*> others[] = {{arguments.train_only, "--train-only"},
                                                 {arguments.lists.has_value(), "--lists"},
                                                 {arguments.probes.has_value(), "--probes"},
                                                 {arguments.bits.has_value(), "--bits"},
                                                 {arguments.code_bytes.has_value(), "--code-bytes"},
                                                 {arguments.training_rows.has_value(), "--training-rows"}};
  for (const auto& [is_given, option] : others)
    if (is_given) refuse(session, "{} is for --kind ivf", option);
  const std::size_t degree = arguments.degree.value_or(GraphIndexOptions().degree);
  if (degree % 16 != 0 || degree > 128)
    refuse(session, "--degree must be a multiple of 16 from 16 to 128, got {}", degree);
}

GraphIndexOptions graph_index_options(const IndexBuildArguments& arguments) {
  GraphIndexOptions options = {.metric = arguments.metric};
  if (arguments.degree) options.degree = *arguments.degree;
  return options;
}

ExitCode report_index(const Session& session, const GraphIndex& index, const std::filesystem::path& output,
                      const Json& more, const std::string& what) {
  Json json = {{"rows", index.size()},
               {"dim", index.dim()},
               {"degree", index.degree()},
               {"entries", index.entries()},
               {"bytes_per_vector", index.bytes_per_vector()},
               {"metric", name(index.metric())},
               {"beam", index.beam()},
               {"calibration", describe_calibration(index)},
               {"output", output.string()}};
  json.update(more);
  conclude(session, json,
           fmt::format("wrote {} vectors with {} edges each to {}: {}", index.size(), index.degree(),
                       output.string(), what));
  if (const auto measured = index.calibration()) remark(session, summarize_calibration(*measured));
  return ExitCode::ok;
}

ExitCode report_graph_index(Session& session, const GraphIndex& index, const std::filesystem::path& output,
                            Json more, double seconds) {
  more["seconds"] = seconds;
  return report_index(
      session, index, output, more,
      fmt::format("{} bytes per vector in addition to it, {:.3g} s", index.bytes_per_vector(), seconds));
}

ExitCode run_graph_index_build(Session& session, const IndexBuildArguments& arguments) {
  check_graph_index_build(session, arguments);
  if (!arguments.work.folder.empty()) return run_planned_index_build(session, arguments);
  check_index_output(arguments.output);
  const VectorFile file = open_vectors(arguments.base);
  const RowsView base = file.rows();
  Provenance run = describe_run(session);
  run["base"] = describe_input(arguments.base, base);
  const Context context = open_context(arguments.context, arguments.seed);
  const Stopwatch watch;
  const GraphIndexOptions options = graph_index_options(arguments);
  Work work(session, context);
  GraphIndex index = work.run_on_data([&](const Context& own) {
    return GraphIndex::build(own, base, options,
                             GraphCalibrationOptions{.target_recall = target_recall_of(arguments)});
  });
  save_index(session, index, run, arguments.output);
  Json more = {{"seed", arguments.seed}};
  more.update(describe_context(context));
  return report_graph_index(session, index, arguments.output, more, watch.seconds());
}

void add_index_export(CLI::App& parent, Session& session) {
  const auto [parser, arguments] = add_command(
      parent, session, run_export, "export", "Write a graph index for hnswlib, SVS or DiskANN",
      "  nearwise index export index.nw -o index.hnsw\n"
      "  nearwise index export index.nw --library svs -o index-svs\n\n"
      "hnswlib.Index(space, dim).load_index('index.hnsw') reads it, with space l2, ip or cosine. SVS reads\n"
      "a folder: svs.Vamana('index-svs/config', svs.GraphLoader('index-svs/graph'), vectors, distance),\n"
      "with 'index-svs/vectors.fvecs' as vectors. DiskANN reads a folder too:\n"
      "diskannpy.StaticMemoryIndex(folder, threads, 64).");
  add_path(parser, "index", arguments.index, "Graph index: .nw")->required();
  add_choice<std::string>(parser, "--library", arguments.library, {"hnswlib", "svs", "diskann"},
                          "Library that will load the file");
  add_output(parser, arguments.output, "File to write; a folder for svs and diskann");
  add_context_options(parser, arguments.context);
}

}  // namespace nearwise::cli
