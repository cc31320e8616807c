// nearwise quantizer encode and decode: codes of vectors, and the reconstructions of codes.
#include <algorithm>
#include <vector>

#include "cli/commands.h"
#include "cli/shared/command.h"
#include "cli/shared/elements.h"
#include "cli/shared/files.h"
#include "cli/shared/quantizer_file.h"
#include "cli/shared/work.h"

namespace nearwise::cli {
namespace {

// At most a few seconds of work.
constexpr std::size_t batch_rows = 32768;

struct CodingArguments {
  std::filesystem::path quantizer;
  std::filesystem::path input;
  std::filesystem::path output;
  AdditiveEncodeOptions additive;
  std::size_t seed = 0;
  ContextArguments context;
};

// Reports before the work what would fail after it; `type` is that of the output.
void check_output_type(const Session& session, const CodingArguments& arguments, ElementType type) {
  require_suffix_for(Content::vectors, arguments.output);
  if (element_type_of(arguments.output).value_or(type) != type)
    refuse(session, "the output is {}, which '{}' cannot hold", name(type), arguments.output.string());
  check_output(session, arguments.output, {arguments.quantizer, arguments.input});
}

ExitCode report_coding(const Session& session, const CodingArguments& arguments, const Quantizer& quantizer,
                       double seconds, Json json, const std::string& what) {
  json.update({{"kind", quantizer.kind()},
               {"code_bytes", quantizer.code_bytes()},
               {"seconds", seconds},
               {"output", arguments.output.string()}});
  conclude(session, json, fmt::format("wrote {} to {}, {:.3g} s", what, arguments.output.string(), seconds));
  return ExitCode::ok;
}

// Sum over all vectors of the squared distance from their reconstruction.
double squared_error(RowsView vectors, const Matrix<float>& decoded) {
  std::vector<float> given(vectors.rows() * vectors.dim());
  convert_rows(vectors, ElementType::f32, reinterpret_cast<std::byte*>(given.data()), 0);
  double sum = 0;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const double difference = static_cast<double>(given[i]) - static_cast<double>(decoded.data()[i]);
    sum += difference * difference;
  }
  return sum;
}

ExitCode run_encode(Session& session, const CodingArguments& arguments) {
  check_output_type(session, arguments, ElementType::u8);
  const Quantizer quantizer = Quantizer::open(arguments.quantizer);
  const VectorFile file = open_vectors(arguments.input);
  const RowsView vectors = file.rows();
  if (vectors.dim() != quantizer.dim())
    refuse(session, "vectors must have the {} dimensions of the quantizer, '{}' has {}", quantizer.dim(),
           arguments.input.string(), vectors.dim());
  const Context context = open_context(arguments.context, arguments.seed);
  const Stopwatch watch;
  VectorWriter writer(arguments.output, ElementType::u8, quantizer.code_bytes());
  double error = 0;
  Work work(session, context, "vectors", vectors.rows());
  work.run_batches(
      vectors, batch_rows,
      [&](const Context& own, RowsView batch, std::size_t) {
        const Matrix<std::uint8_t> codes = quantizer.encode(own, batch, arguments.additive);
        error += squared_error(batch, quantizer.decode(own, codes));
        writer.append(codes.view());
      },
      [&writer] { writer.commit(); });
  error /= static_cast<double>(std::max<std::size_t>(vectors.rows(), 1));
  return report_coding(session, arguments, quantizer, watch.seconds(),
                       {{"rows", vectors.rows()}, {"dim", vectors.dim()}, {"error", error}},
                       fmt::format("{} codes of {} bytes (mean squared error {:.6g})", vectors.rows(),
                                   quantizer.code_bytes(), error));
}

ExitCode run_decode(Session& session, const CodingArguments& arguments) {
  check_output_type(session, arguments, ElementType::f32);
  const Quantizer quantizer = Quantizer::open(arguments.quantizer);
  const VectorFile file = open_vectors(arguments.input);
  const RowsView codes = file.rows();
  if (codes.type() != ElementType::u8 || codes.dim() != quantizer.code_bytes())
    refuse(session, "expected codes of {} bytes (u8), '{}' has rows of {} {}", quantizer.code_bytes(),
           arguments.input.string(), codes.dim(), name(codes.type()));
  const Context context = open_context(arguments.context);
  const Stopwatch watch;
  VectorWriter writer(arguments.output, ElementType::f32, quantizer.dim());
  Work work(session, context, "codes", codes.rows());
  work.run_batches(
      codes, batch_rows,
      [&](const Context& own, RowsView batch, std::size_t) {
        const MatrixView<const std::uint8_t> view(reinterpret_cast<const std::uint8_t*>(batch.data()),
                                                  batch.rows(), batch.dim(), batch.stride_bytes());
        writer.append(blame_data([&] { return quantizer.decode(own, view); }).view());
      },
      [&writer] { writer.commit(); });
  return report_coding(session, arguments, quantizer, watch.seconds(),
                       {{"rows", codes.rows()}, {"dim", quantizer.dim()}},
                       fmt::format("{} x {}", codes.rows(), quantizer.dim()));
}

}  // namespace

void add_quantizer_encode(CLI::App& parent, Session& session) {
  const auto [parser, arguments] =
      add_command(parent, session, run_encode, "encode", "Encode vectors with a quantizer",
                  "  nearwise quantizer encode quantizer.nw base.fbin -o codes.u8bin\n\n"
                  "Codes are bytes: .u8bin, .bvecs or .npy.");
  add_path(parser, "quantizer", arguments.quantizer, "Quantizer of quantizer train: .nw")->required();
  add_path(parser, "base", arguments.input, "Vectors: .npy .fbin .fvecs .u8bin ...")->required();
  add_output(parser, arguments.output, "Codes to write");
  add_count(parser, "--iterations", arguments.additive.iterations, 1,
            "Iterations of the code search of lsq: more are slower and more accurate");
  add_seed(parser, arguments.seed);
  add_context_options(parser, arguments.context);
}

void add_quantizer_decode(CLI::App& parent, Session& session) {
  const auto [parser, arguments] =
      add_command(parent, session, run_decode, "decode", "Reconstruct vectors from codes",
                  "  nearwise quantizer decode quantizer.nw codes.u8bin -o vectors.fbin\n\n"
                  "Vectors are f32: .fbin, .fvecs or .npy.");
  add_path(parser, "quantizer", arguments.quantizer, "Quantizer that made the codes: .nw")->required();
  add_path(parser, "codes", arguments.input, "Codes of quantizer encode: .u8bin .bvecs .npy")->required();
  add_output(parser, arguments.output, "Vectors to write");
  add_context_options(parser, arguments.context);
}

}  // namespace nearwise::cli
