// nearwise index build: trains an inverted file on the vectors of a file and adds them all.
#include <optional>

#include "cli/commands.h"
#include "cli/index/build_options.h"
#include "cli/index/index_file.h"
#include "cli/shared/command.h"
#include "cli/shared/files.h"
#include "nearwise/quantize/additive_quantizer.h"

namespace nearwise::cli {
namespace {

Ivf build(Session& session, const Context& context, const IndexBuildArguments& arguments, RowsView base) {
  const IvfOptions options = index_options(arguments);
  std::optional<CalibrationOptions> calibration;
  if (!arguments.probes) calibration = {.target_recall = target_recall_of(arguments)};
  Work work(session, context);
  return work.run_on_data([&](const Context& own) {
    return arguments.train_only ? Ivf::train(own, base, options)
                                : Ivf::build(own, base, options, calibration);
  });
}

ExitCode run_build(Session& session, const IndexBuildArguments& arguments) {
  if (arguments.kind == "graph") return run_graph_index_build(session, arguments);
  if (!arguments.work.folder.empty()) return run_planned_index_build(session, arguments);
  check_index_output(arguments.output);
  const VectorFile file = open_vectors(arguments.base);
  const RowsView base = file.rows();
  check_index_build(session, arguments, base);
  Provenance run = describe_run(session);
  run["base"] = describe_input(arguments.base, base);

  const Context context = open_context(arguments.context, arguments.seed);
  const Stopwatch watch;
  Ivf index = build(session, context, arguments, base);
  if (arguments.probes) {
    if (*arguments.probes > index.lists())
      refuse(session, "--probes must be at most the {} lists, got {}", index.lists(), *arguments.probes);
    index.set_probes(*arguments.probes);
  }
  save_index(session, index, run, arguments.output);
  Json more = {{"seed", arguments.seed}, {"seconds", watch.seconds()}};
  more.update(describe_context(context));
  return report_index(session, index, arguments.output, more,
                      fmt::format("{} bytes per vector, {:.3g} s", index.code_bytes(), watch.seconds()));
}

}  // namespace

double target_recall_of(const IndexBuildArguments& arguments) {
  return arguments.target_recall.value_or(arguments.kind == "graph" ? GraphCalibrationOptions().target_recall
                                                                    : CalibrationOptions().target_recall);
}

IvfOptions index_options(const IndexBuildArguments& arguments) {
  IvfOptions options = {.metric = arguments.metric,
                        .lists = arguments.lists,
                        .iterations = arguments.iterations,
                        .training_rows = arguments.training_rows,
                        .vectors = arguments.vectors};
  if (arguments.vectors == VectorStorage::file) options.vector_file = arguments.base;
  if (arguments.codec == "pq")
    options.encoding = Pq{.code_bytes = arguments.code_bytes, .bits = arguments.bits.value_or(8)};
  else if (arguments.codec == "lsq")
    options.encoding = Lsq{.code_bytes = arguments.code_bytes.value_or(Lsq().code_bytes)};
  return options;
}

void check_index_build(const Session& session, const IndexBuildArguments& arguments, RowsView base) {
  const std::string where = arguments.base.string();
  if (arguments.degree) refuse(session, "--degree is for --kind graph");
  if (arguments.codec == "flat" && arguments.code_bytes)
    refuse(session, "--code-bytes is for --codec pq and lsq, got --codec flat");
  if (arguments.codec == "flat" && arguments.vectors != VectorStorage::keep)
    refuse(session, "--vectors is for --codec pq and lsq: a flat index is its vectors");
  if (arguments.codec != "pq" && arguments.bits)
    refuse(session, "--bits is for --codec pq, got --codec {}", arguments.codec);
  if (arguments.lists && *arguments.lists > base.rows())
    refuse(session, "--lists must be at most the {} vectors of '{}', got {}", base.rows(), where,
           *arguments.lists);
  if (arguments.lists && arguments.probes && *arguments.probes > *arguments.lists)
    refuse(session, "--probes must be at most the {} lists, got {}", *arguments.lists, *arguments.probes);
  if (arguments.codec == "flat") return;
  const std::size_t code_bytes = arguments.code_bytes.value_or(1);
  if (arguments.codec == "lsq" && code_bytes > AdditiveQuantizer::most_codebooks)
    refuse(session, "--code-bytes of --codec lsq must be 1 to {}, got {}", AdditiveQuantizer::most_codebooks,
           code_bytes);
  if (arguments.codec == "pq" && code_bytes > base.dim())
    refuse(session, "--code-bytes must be at most the {} dimensions of '{}', got {}", base.dim(), where,
           code_bytes);
  const unsigned bits = arguments.bits.value_or(8);
  const std::size_t codewords = std::size_t{1} << bits;
  if (base.rows() < codewords)
    refuse(session, "codes of {} bits need at least {} training vectors, '{}' has {}", bits, codewords, where,
           base.rows());
}

void add_index_build_options(CLI::App& parser, IndexBuildArguments& arguments) {
  add_path(parser, "base", arguments.base, "Vectors: .npy .fbin .fvecs .u8bin ...")->required();
  add_choice<std::string>(
      parser, "--kind", arguments.kind, {"ivf", "graph"},
      "Inverted file (ivf); or search graph (graph), which answers single queries at low latency");
  add_count(parser, "--degree", arguments.degree, 16,
            "Edges per vector of a graph: a multiple of 16 up to 128 (default: 48)");
  add_choice<std::string>(
      parser, "--codec", arguments.codec, {"flat", "pq", "lsq"},
      "Encoding of the vectors: unchanged (flat), product codes of the residuals (pq), or "
      "additive codes of them (lsq: more accurate, slower to build)");
  add_count(parser, "--lists", arguments.lists, 1, "Inverted lists (default: about 4 sqrt(vectors))");
  add_count(parser, "--code-bytes", arguments.code_bytes, 1,
            "Bytes per code (default: pq 1 per 8 dimensions, 8 to 64; lsq 8)");
  add_choice<unsigned>(parser, "--bits", arguments.bits, {4, 8}, "Bits per sub-quantizer of pq (default: 8)");
  add_choice(
      parser, "--vectors", arguments.vectors,
      {VectorStorage::keep, VectorStorage::f16, VectorStorage::u8, VectorStorage::none, VectorStorage::file},
      "What to keep of each vector for re-ranking: itself, rounded to f16 or to 8 bits, nothing, or its row "
      "in the input file, which must not change");
  add_choice(parser, "--metric", arguments.metric, all_metrics, "Metric; inner_product: largest first");
  add_count(parser, "--iterations", arguments.iterations, 1, "Maximum k-means iterations");
  add_count(parser, "--training-rows", arguments.training_rows, 1,
            "Training vectors, drawn at random (default: 256 per list)");
  CLI::Option* const probes =
      add_count(parser, "--probes", arguments.probes, 1,
                "Default number of lists probed by a search (default: calibrated, see --target-recall)");
  add_target_recall(parser, arguments.target_recall,
                    "Recall@10 that the calibrated default must reach (default: 0.9; graphs: 0.95)")
      ->excludes(probes);
  add_seed(parser, arguments.seed);
  add_context_options(parser, arguments.context);
}

void add_index_build(CLI::App& parent, Session& session) {
  const auto [parser, arguments] = add_command(
      parent, session, run_build, "build", "Build an index of the vectors of a file",
      "  nearwise index build base.fbin -o index.nw\n"
      "  nearwise index build base.fbin --lists 4096 --code-bytes 16 --target-recall 0.95 -o index.nw\n"
      "  nearwise index build base.fbin --kind graph --target-recall 0.95 -o index.nw\n"
      "  nearwise index build sample.fbin --lists 4096 --train-only -o trained.nw\n\n"
      "Vectors get their row numbers as ids. The default number of probes is calibrated and printed.");
  add_index_build_options(parser, arguments);
  add_output(parser, arguments.output, "Index to write: .nw");
  CLI::Option* const train_only = parser.add_flag("--train-only", arguments.train_only,
                                                  "Train without adding the vectors: for nearwise index add");
  add_work_options(parser, arguments.work)->excludes(train_only);
}

}  // namespace nearwise::cli
