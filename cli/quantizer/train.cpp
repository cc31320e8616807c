// nearwise train: a quantizer of the rows of a file, for nearwise encode and decode.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>

#include "cli/shared/files.h"
#include "cli/shared/index_file.h"
#include "cli/shared/machine_options.h"
#include "cli/shared/progress_bar.h"
#include "cli/shared/quantizer_file.h"
#include "cli/shared/result_file.h"
#include "cli/shared/session.h"

namespace nearwise::cli {
namespace {

constexpr std::size_t unsaid = ~std::size_t{0};

struct TrainArguments {
  std::filesystem::path base;
  std::filesystem::path output;
  std::string codec = "lsq";
  std::size_t code_bytes = 8;
  std::size_t bits = 8;
  std::size_t rounds = unsaid;  // the codec's own
  std::size_t iterations = unsaid;
  std::size_t rows_per_centroid = 256;
  std::size_t seed = 0;
  MachineArguments machine;
};

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, "train: " + message);
}

// Mistakes in the arguments are told here, so that what the library itself refuses as invalid is the content of a file.
void check_arguments(const TrainArguments& arguments, RowsView base) {
  const std::string where = arguments.base.string();
  const std::size_t words = std::size_t{1} << arguments.bits;
  if (base.rows() < words)
    refuse(fmt::format("codes of {} bits need at least {} rows to train on, '{}' has {}", arguments.bits,
                       words, where, base.rows()));
  if (arguments.codec == "lsq") {
    constexpr std::size_t most = AdditiveQuantizer::most_codebooks + 1;
    if (arguments.code_bytes < 2 || arguments.code_bytes > most)
      refuse(fmt::format("codes of lsq have 2 to {} bytes, the last for the length, given {}", most,
                         arguments.code_bytes));
  } else if (arguments.code_bytes * 8 / arguments.bits > base.dim()) {
    refuse(fmt::format("codes of {} parts exceed the {} dimensions of '{}'",
                       arguments.code_bytes * 8 / arguments.bits, base.dim(), where));
  }
}

Quantizer train(const Context& context, const TrainArguments& arguments, RowsView base) {
  const auto given_or = [](std::size_t given, std::size_t usual) { return given == unsaid ? usual : given; };
  if (arguments.codec == "lsq") {
    AdditiveQuantizerOptions options;
    options.codebooks = arguments.code_bytes - 1;
    options.rounds = given_or(arguments.rounds, options.rounds);
    options.iterations = given_or(arguments.iterations, options.iterations);
    options.rows_per_centroid = arguments.rows_per_centroid;
    return Quantizer(AdditiveQuantizer::train(context, base, options));
  }
  OptimizedProductQuantizerOptions options;
  options.quantizer.parts = arguments.code_bytes * 8 / arguments.bits;
  options.quantizer.bits = static_cast<unsigned>(arguments.bits);
  options.quantizer.iterations = given_or(arguments.iterations, options.quantizer.iterations);
  options.quantizer.rows_per_centroid = arguments.rows_per_centroid;
  options.rounds = given_or(arguments.rounds, options.rounds);
  if (arguments.codec == "pq") return Quantizer(ProductQuantizer::train(context, base, options.quantizer));
  return Quantizer(OptimizedProductQuantizer::train(context, base, options));
}

ExitCode run_train(Session& session, const TrainArguments& arguments) {
  Quantizer::require_suffix(arguments.output);
  check_output("train", arguments.output, {arguments.base});
  const VectorFile base_file = open_vectors(arguments.base);
  const RowsView base = base_file.rows();
  check_arguments(arguments, base);
  Provenance run = describe_run(session);
  run["base"] = describe_input(arguments.base, base);
  run["seed"] = std::to_string(arguments.seed);

  ProgressBar bar(choose_progress_style(session.quiet), "train", "rows", base.rows());
  const Context context = open_context(arguments.machine, bar, arguments.seed);
  const auto start = std::chrono::steady_clock::now();
  const Quantizer trained = [&] {
    const Interrupt::Protection protection = session.interrupt->protect([&context] { context.cancel(); });
    return blame_data([&] { return train(context, arguments, base); });
  }();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  bar.finish();
  session.interrupt->check();

  const Interrupt::Protection protection = session.interrupt->protect();
  trained.save(arguments.output, run);
  if (session.json)
    print(Json{{"codec", trained.codec()},
               {"dim", trained.dim()},
               {"code_bytes", trained.code_bytes()},
               {"rows", base.rows()},
               {"seconds", seconds},
               {"output", arguments.output.string()},
               {"seed", arguments.seed},
               {"device", arguments.machine.device},
               {"isa", context.isa()},
               {"threads", context.threads()},
               {"memory_peak_bytes", context.memory_peak()}});
  else
    remark(session, fmt::format("wrote the {} quantizer of {} elements in {} bytes to {}: {} rows, {:.3g} s",
                                trained.codec(), trained.dim(), trained.code_bytes(),
                                arguments.output.string(), base.rows(), seconds));
  return ExitCode::ok;
}

}  // namespace

void add_train(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* const command =
      add_command(app, session, "train", "Train a quantizer on the rows of a file",
                  "  nearwise train learn.fbin --codec lsq --code-bytes 8 --output words.nw\n"
                  "  nearwise encode words.nw base.fbin --output codes.u8bin\n\n"
                  "A code stands for a row in a few bytes. lsq (additive: sums of codewords, found by "
                  "search) loses the least\n"
                  "and takes the longest to encode; pq cuts rows into parts; opq rotates them first.");
  add_path(*command, "base", arguments->base, "Vectors: .npy .fbin .fvecs .u8bin ...")->required();
  add_path(*command, "-o,--output", arguments->output, "Where the quantizer goes: .nw")->required();
  command->add_option("--codec", arguments->codec, "lsq, opq or pq (lsq)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"lsq", "opq", "pq"}));
  add_count(*command, "--code-bytes", arguments->code_bytes, 1,
            "Bytes of a code; of lsq the last one tells a length (8)");
  CLI::Option* const bits =
      add_count(*command, "--bits", arguments->bits, 4, "Of a part's code, of pq and opq: 4 or 8 (8)");
  CLI::Option* const rounds = add_count(*command, "--rounds", arguments->rounds, 0,
                                        "Of lsq: of codewords and codes (25); of opq: of rotations (10)");
  add_count(*command, "--iterations", arguments->iterations, 1,
            "Of lsq: of the search for codes in a round (8); else of k-means, at most (25)");
  add_count(*command, "--rows-per-centroid", arguments->rows_per_centroid, 0,
            "Rows to train on, drawn by the seed; 0: all (256)");
  add_count(*command, "--seed", arguments->seed, 0, "Of the random numbers (0)");
  add_machine_options(*command, arguments->machine);
  command->callback([&session, arguments, bits, rounds] {
    if (arguments->bits != 4 && arguments->bits != 8)
      throw CLI::ValidationError("--bits", fmt::format("expected 4 or 8, given {}", arguments->bits));
    if (arguments->codec == "lsq" && !bits->empty())
      throw CLI::ValidationError("--bits", "is for --codec pq and opq");
    if (arguments->codec == "pq" && !rounds->empty())
      throw CLI::ValidationError("--rounds", "is for --codec lsq and opq");
    session.run = [&session, arguments] { return run_train(session, *arguments); };
  });
}

}  // namespace nearwise::cli
