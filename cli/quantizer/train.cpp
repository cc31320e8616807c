// nearwise quantizer train: a quantizer for the vectors of a file.
#include <algorithm>
#include <optional>
#include <string>

#include "cli/commands.h"
#include "cli/shared/command.h"
#include "cli/shared/files.h"
#include "cli/shared/quantizer_file.h"
#include "cli/shared/work.h"

namespace nearwise::cli {
namespace {

struct TrainArguments {
  std::filesystem::path base;
  std::filesystem::path output;
  std::string kind = "pq";
  std::size_t code_bytes = 8;
  std::optional<unsigned> bits;
  std::optional<std::size_t> rounds;
  std::optional<std::size_t> iterations;
  std::optional<std::size_t> training_rows;
  std::size_t seed = 0;
  ContextArguments context;
};

// Reports wrong arguments, so that whatever the library refuses later is the content of a file.
void check_arguments(const Session& session, const TrainArguments& arguments, RowsView base) {
  const std::string where = arguments.base.string();
  if (arguments.kind == "lsq" && arguments.bits)
    refuse(session, "--bits is for --kind pq and opq, got --kind lsq");
  if (arguments.kind == "pq" && arguments.rounds)
    refuse(session, "--rounds is for --kind lsq and opq, got --kind pq");
  const unsigned bits = arguments.bits.value_or(8);
  const std::size_t codewords = std::size_t{1} << bits;
  if (base.rows() < codewords)
    refuse(session, "codes of {} bits need at least {} training vectors, '{}' has {}", bits, codewords, where,
           base.rows());
  const std::size_t parts = arguments.code_bytes * 8 / bits;
  constexpr std::size_t largest = AdditiveQuantizer::most_codebooks + 1;
  if (arguments.kind != "lsq" && parts > base.dim())
    refuse(session, "--code-bytes {} makes {} sub-quantizers, '{}' has only {} dimensions",
           arguments.code_bytes, parts, where, base.dim());
  if (arguments.kind == "lsq" && (arguments.code_bytes < 2 || arguments.code_bytes > largest))
    refuse(session, "--code-bytes of --kind lsq must be 2 to {}, one of them for the norm, got {}", largest,
           arguments.code_bytes);
}

Quantizer train(const Context& context, const TrainArguments& arguments, RowsView base) {
  if (arguments.kind == "lsq") {
    AdditiveQuantizerOptions options;
    options.codebooks = arguments.code_bytes - 1;
    options.rounds = arguments.rounds.value_or(options.rounds);
    options.iterations = arguments.iterations.value_or(options.iterations);
    options.training_rows = arguments.training_rows;
    return Quantizer(AdditiveQuantizer::train(context, base, options));
  }
  OptimizedProductQuantizerOptions options;
  options.quantizer.bits = arguments.bits.value_or(options.quantizer.bits);
  options.quantizer.parts = arguments.code_bytes * 8 / options.quantizer.bits;
  options.quantizer.iterations = arguments.iterations.value_or(options.quantizer.iterations);
  options.quantizer.training_rows = arguments.training_rows;
  options.rounds = arguments.rounds.value_or(options.rounds);
  if (arguments.kind == "pq") return Quantizer(ProductQuantizer::train(context, base, options.quantizer));
  return Quantizer(OptimizedProductQuantizer::train(context, base, options));
}

ExitCode run_train(Session& session, const TrainArguments& arguments) {
  require_container(arguments.output, "a quantizer");
  check_output(session, arguments.output, {arguments.base});
  const VectorFile file = open_vectors(arguments.base);
  const RowsView base = file.rows();
  check_arguments(session, arguments, base);
  Provenance run = describe_run(session);
  run["base"] = describe_input(arguments.base, base);
  run["seed"] = std::to_string(arguments.seed);

  const Context context = open_context(arguments.context, arguments.seed);
  const Stopwatch watch;
  Work work(session, context, "vectors", base.rows());
  const Quantizer trained = work.run_on_data([&](const Context& own) { return train(own, arguments, base); });
  const double seconds = watch.seconds();
  const Interrupt::Protection protection = session.interrupt->protect();
  trained.save(arguments.output, run);
  Json json = {{"kind", trained.kind()}, {"dim", trained.dim()}, {"code_bytes", trained.code_bytes()},
               {"rows", base.rows()},    {"seconds", seconds},   {"output", arguments.output.string()},
               {"seed", arguments.seed}};
  json.update(describe_context(context));
  conclude(session, json,
           fmt::format("wrote {} quantizer to {}: {} dimensions in {} bytes, {} training vectors, {:.3g} s",
                       trained.kind(), arguments.output.string(), trained.dim(), trained.code_bytes(),
                       base.rows(), seconds));
  return ExitCode::ok;
}

}  // namespace

void add_quantizer_train(CLI::App& parent, Session& session) {
  const auto [parser, arguments] =
      add_command(parent, session, run_train, "train", "Train a quantizer on the vectors of a file",
                  "  nearwise quantizer train learn.fbin --code-bytes 8 -o quantizer.nw\n"
                  "  nearwise quantizer encode quantizer.nw base.fbin -o codes.u8bin\n\n"
                  "pq: product quantization; opq: with a trained rotation; lsq: additive quantization, the "
                  "most accurate\n"
                  "and the slowest to train and to encode.");
  add_path(parser, "base", arguments.base, "Training vectors: .npy .fbin .fvecs .u8bin ...")->required();
  add_output(parser, arguments.output, "Quantizer to write: .nw");
  add_choice<std::string>(parser, "--kind", arguments.kind, {"pq", "opq", "lsq"}, "Kind of quantizer");
  add_count(parser, "--code-bytes", arguments.code_bytes, 1, "Bytes per code; lsq uses one for the norm");
  add_choice<unsigned>(parser, "--bits", arguments.bits, {4, 8},
                       "Bits per sub-quantizer of pq and opq (default: 8)");
  add_count(parser, "--rounds", arguments.rounds, 0,
            "Training rounds: lsq, of codewords and codes (default: 25); opq, of rotations (default: 10)");
  add_count(
      parser, "--iterations", arguments.iterations, 1,
      "Iterations: lsq, of the code search per round (default: 8); pq and opq, of k-means (default: 25)");
  add_count(parser, "--training-rows", arguments.training_rows, 1,
            "Training vectors, drawn at random (default: 256 per codeword of a codebook)");
  add_seed(parser, arguments.seed);
  add_context_options(parser, arguments.context);
}

}  // namespace nearwise::cli
