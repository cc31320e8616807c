// nearwise quantizer encode: codes of the vectors of a file.
#include <algorithm>
#include <vector>

#include "cli/commands.h"
#include "cli/quantizer/coding.h"
#include "cli/shared/command.h"
#include "cli/shared/elements.h"
#include "cli/shared/files.h"
#include "cli/shared/work.h"

namespace nearwise::cli {
namespace {

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
  check_coding_output(session, arguments, ElementType::u8);
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
      vectors, coding_batch_rows,
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

}  // namespace nearwise::cli
