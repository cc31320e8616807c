// nearwise quantizer decode: the reconstructions of codes.
#include "cli/commands.h"
#include "cli/quantizer/coding.h"
#include "cli/shared/command.h"
#include "cli/shared/files.h"
#include "cli/shared/work.h"

namespace nearwise::cli {
namespace {

ExitCode run_decode(Session& session, const CodingArguments& arguments) {
  check_coding_output(session, arguments, ElementType::f32);
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
      codes, coding_batch_rows,
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
