// nearwise encode and decode: rows to codes of a quantizer and back, in batches.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cli/shared/elements.h"
#include "cli/shared/files.h"
#include "cli/shared/index_file.h"
#include "cli/shared/machine_options.h"
#include "cli/shared/progress_bar.h"
#include "cli/shared/quantizer_file.h"
#include "cli/shared/result_file.h"
#include "cli/shared/session.h"

namespace nearwise::cli {
namespace {

// Some seconds of work at most.
constexpr std::size_t batch_rows = 32768;

struct CodingArguments {
  std::filesystem::path quantizer;
  std::filesystem::path input;
  std::filesystem::path output;
  AdditiveEncodeOptions additive;
  std::size_t seed = 0;
  MachineArguments machine;
};

[[noreturn]] void refuse(const std::string& command, const std::string& message) {
  throw Error(ErrorCode::invalid_argument, command + ": " + message);
}

void check_files(const std::string& command, const CodingArguments& arguments, ElementType type) {
  require_suffix_for(Content::vectors, arguments.output);
  if (element_type_of(arguments.output).value_or(type) != type)
    refuse(command,
           fmt::format("the output is {}, which '{}' cannot hold", name(type), arguments.output.string()));
  check_output(command, arguments.output, {arguments.quantizer, arguments.input});
}

// Appends what work(batch) returns, batch after batch of the rows.
void write_batches(Session& session, const std::string& command, const Context& context, RowsView rows,
                   VectorWriter& writer, const std::function<void(RowsView, VectorWriter&)>& work) {
  ProgressBar bar(choose_progress_style(session.quiet), command, "rows", rows.rows());
  const Interrupt::Protection protection = session.interrupt->protect([&context] { context.cancel(); });
  for (std::size_t first = 0; first < rows.rows(); first += batch_rows) {
    session.interrupt->check();
    const RowsView batch = rows.slice(first, std::min(batch_rows, rows.rows() - first));
    require_finite(batch, first);
    work(batch, writer);
    bar.update(first + batch.rows(), rows.rows());
  }
  session.interrupt->check();
  writer.commit();
}

// The sum of the squared distances of rows from what their codes stand for.
double squared_error(RowsView rows, const Matrix<float>& decoded) {
  std::vector<float> given(rows.rows() * rows.dim());
  convert_rows(rows, ElementType::f32, reinterpret_cast<std::byte*>(given.data()), 0);
  double sum = 0;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const double difference = static_cast<double>(given[i]) - static_cast<double>(decoded.data()[i]);
    sum += difference * difference;
  }
  return sum;
}

void tell(const Session& session, const CodingArguments& arguments, const Quantizer& quantizer, Json json,
          const std::string& what, double seconds) {
  json.update({{"codec", quantizer.codec()},
               {"code_bytes", quantizer.code_bytes()},
               {"seconds", seconds},
               {"output", arguments.output.string()}});
  if (session.json)
    print(json);
  else
    remark(session, fmt::format("wrote {} to {}, {:.3g} s", what, arguments.output.string(), seconds));
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

ExitCode run_encode(Session& session, const CodingArguments& arguments) {
  check_files("encode", arguments, ElementType::u8);
  const Quantizer quantizer = Quantizer::open(arguments.quantizer);
  const VectorFile file = open_vectors(arguments.input);
  const RowsView rows = file.rows();
  if (rows.dim() != quantizer.dim())
    refuse("encode", fmt::format("the quantizer is of {} dimensions, '{}' has {}", quantizer.dim(),
                                 arguments.input.string(), rows.dim()));
  const Context context = open_silent_context(arguments.machine, arguments.seed);
  const auto start = std::chrono::steady_clock::now();
  VectorWriter writer(arguments.output, ElementType::u8, quantizer.code_bytes());
  double error = 0;
  write_batches(session, "encode", context, rows, writer, [&](RowsView batch, VectorWriter& out) {
    const Matrix<std::uint8_t> codes = quantizer.encode(context, batch, arguments.additive);
    error += squared_error(batch, quantizer.decode(context, codes));
    out.append(codes.view());
  });
  error /= static_cast<double>(std::max<std::size_t>(rows.rows(), 1));
  tell(session, arguments, quantizer, {{"rows", rows.rows()}, {"dim", rows.dim()}, {"error", error}},
       fmt::format("{} codes of {} bytes, mean squared error {:.6g},", rows.rows(), quantizer.code_bytes(),
                   error),
       seconds_since(start));
  return ExitCode::ok;
}

ExitCode run_decode(Session& session, const CodingArguments& arguments) {
  check_files("decode", arguments, ElementType::f32);
  const Quantizer quantizer = Quantizer::open(arguments.quantizer);
  const VectorFile file = open_vectors(arguments.input);
  const RowsView codes = file.rows();
  if (codes.type() != ElementType::u8 || codes.dim() != quantizer.code_bytes())
    refuse("decode",
           fmt::format("codes of {} bytes (u8) expected, '{}' has rows of {} {}", quantizer.code_bytes(),
                       arguments.input.string(), codes.dim(), name(codes.type())));
  const Context context = open_silent_context(arguments.machine);
  const auto start = std::chrono::steady_clock::now();
  VectorWriter writer(arguments.output, ElementType::f32, quantizer.dim());
  write_batches(session, "decode", context, codes, writer, [&](RowsView batch, VectorWriter& out) {
    const MatrixView<const std::uint8_t> view(reinterpret_cast<const std::uint8_t*>(batch.data()),
                                              batch.rows(), batch.dim(), batch.stride_bytes());
    out.append(blame_data([&] { return quantizer.decode(context, view); }).view());
  });
  tell(session, arguments, quantizer, {{"rows", codes.rows()}, {"dim", quantizer.dim()}},
       fmt::format("{} x {}", codes.rows(), quantizer.dim()), seconds_since(start));
  return ExitCode::ok;
}

}  // namespace

void add_encode(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<CodingArguments>();
  CLI::App* const command =
      add_command(app, session, "encode", "Encode the rows of a file with a quantizer",
                  "  nearwise encode words.nw base.fbin --output codes.u8bin\n\n"
                  "The quantizer is one of nearwise train. Codes are bytes: .u8bin, .bvecs or .npy.");
  add_path(*command, "quantizer", arguments->quantizer, "Of nearwise train: .nw")->required();
  add_path(*command, "base", arguments->input, "Vectors: .npy .fbin .fvecs .u8bin ...")->required();
  add_path(*command, "-o,--output", arguments->output, "Where the codes go")->required();
  add_count(*command, "--iterations", arguments->additive.iterations, 1,
            "Of the search for codes of lsq: more take longer and lose less (16)");
  add_count(*command, "--seed", arguments->seed, 0, "Of the random numbers of that search (0)");
  add_machine_options(*command, arguments->machine);
  command->callback([&session, arguments] {
    session.run = [&session, arguments] { return run_encode(session, *arguments); };
  });
}

void add_decode(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<CodingArguments>();
  CLI::App* const command =
      add_command(app, session, "decode", "Write the rows that codes stand for",
                  "  nearwise decode words.nw codes.u8bin --output rows.fbin\n\n"
                  "The quantizer is the one that encoded them. Rows are f32: .fbin, .fvecs or .npy.");
  add_path(*command, "quantizer", arguments->quantizer, "Of nearwise train: .nw")->required();
  add_path(*command, "codes", arguments->input, "Codes of nearwise encode: .u8bin .bvecs .npy")->required();
  add_path(*command, "-o,--output", arguments->output, "Where the rows go")->required();
  add_machine_options(*command, arguments->machine);
  command->callback([&session, arguments] {
    session.run = [&session, arguments] { return run_decode(session, *arguments); };
  });
}

}  // namespace nearwise::cli
