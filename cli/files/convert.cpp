// nearwise convert: vectors or neighbours from one file format to another.
//
// Vectors pass through in chunks, within --memory; neighbours are read whole.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "cli/shared/elements.h"
#include "cli/shared/files.h"
#include "cli/shared/progress_bar.h"
#include "cli/shared/session.h"
#include "cli/shared/text.h"
#include "nearwise/machine.h"
#include "nearwise/storage.h"
#include "nearwise/vector_file.h"

namespace nearwise::cli {
namespace {

struct ConvertArguments {
  std::filesystem::path input;
  std::filesystem::path output;
  std::string type;    // empty: the type of the output's suffix, or the input's
  std::string metric;  // for neighbours that become a container and do not say themselves
  std::uint64_t memory = std::uint64_t{256} << 20;
};

// Large enough for the disk, small enough that Ctrl-C and progress do not wait for a chunk.
constexpr std::uint64_t largest_chunk_bytes = std::uint64_t{8} << 20;

ElementType choose_type(const ConvertArguments& arguments, ElementType from) {
  if (!arguments.type.empty()) return parse_element_type(arguments.type);
  const ElementType to = element_type_of(arguments.output).value_or(from);
  if (!is_exact(from, to))
    throw Error(ErrorCode::invalid_argument,
                fmt::format("convert: {} to {} can lose digits; --type {} asks for it", name(from), name(to),
                            name(to)));
  return to;
}

ExitCode convert_vectors(Session& session, const ConvertArguments& arguments) {
  require_suffix_for(Content::vectors, arguments.output);
  // One chunk read, the same converted, and the buffers of reader and writer: a quarter each.
  const std::uint64_t share =
      arguments.memory == 0 ? std::numeric_limits<std::uint64_t>::max() : arguments.memory / 4;
  const auto chunk_bytes = static_cast<std::size_t>(std::clamp<std::uint64_t>(share, 1, largest_chunk_bytes));
  VectorReader reader = read_vectors(arguments.input, chunk_bytes);
  const ElementType to = choose_type(arguments, reader.type());
  const std::uint64_t row_bytes = reader.dim() * std::max(element_size(reader.type()), element_size(to));
  if (row_bytes > share)
    throw Error(
        ErrorCode::out_of_memory,
        fmt::format("convert: a row of '{}' takes {}, --memory {} has room for less than four",
                    arguments.input.string(), format_bytes(row_bytes), format_bytes(arguments.memory)));

  ProgressBar bar(choose_progress_style(session.quiet), "convert", "rows", reader.rows());
  const Interrupt::Protection protection = session.interrupt->protect();
  VectorWriter writer(arguments.output, to, reader.dim());
  std::vector<std::byte> converted;
  std::size_t done = 0;
  for (RowsView rows = reader.next(); rows.rows() > 0; rows = reader.next()) {
    session.interrupt->check();
    if (rows.type() == to) {
      writer.append(rows);
    } else {
      const std::size_t stride_bytes = rows.dim() * element_size(to);
      converted.resize(rows.rows() * stride_bytes);
      convert_rows(rows, to, converted.data(), done);
      writer.append(RowsView(converted.data(), to, rows.rows(), rows.dim(), stride_bytes));
    }
    done += rows.rows();
    bar.update(done, reader.rows());
  }
  session.interrupt->check();
  writer.commit();
  bar.finish();

  if (session.json)
    print(Json{{"content", "vectors"},
               {"rows", done},
               {"dim", reader.dim()},
               {"from", name(reader.type())},
               {"to", name(to)},
               {"output", arguments.output.string()}});
  else
    remark(session,
           fmt::format("wrote {} x {} {} to {}", done, reader.dim(), name(to), arguments.output.string()));
  return ExitCode::ok;
}

void write_container(const ConvertArguments& arguments, NeighborFile file) {
  if (!has_distances(file.neighbors))
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format(
            "convert: a container holds distances, and '{}' has none; .ivecs, .ibin and .npy hold ids",
            arguments.input.string()));
  std::optional<Metric> metric = file.metric;
  if (!arguments.metric.empty()) {
    if (metric && *metric != parse_metric(arguments.metric))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("convert: '{}' was made with {}, not {}", arguments.input.string(),
                              name(*metric), arguments.metric));
    metric = parse_metric(arguments.metric);
  }
  if (!metric)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("convert: a container names the metric and '{}' does not; say it with --metric",
                            arguments.input.string()));
  SavedNeighbors saved;
  saved.neighbors = std::move(file.neighbors);
  saved.metric = *metric;
  saved.provenance = std::move(file.provenance);
  // A container copied to a container keeps its own story.
  if (saved.provenance.empty())
    saved.provenance = {{"converted_from", arguments.input.string()},
                        {"time", time_of_run()},
                        {"version", "nearwise " + version()}};
  save(saved, arguments.output);
}

ExitCode convert_neighbors(Session& session, const ConvertArguments& arguments) {
  if (!arguments.type.empty())
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("convert: --type is for vectors, '{}' holds neighbours", arguments.input.string()));
  require_suffix_for(Content::neighbors, arguments.output);
  require_fits(arguments.input, arguments.memory);
  NeighborFile file = read_neighbor_file(arguments.input);
  const std::size_t rows = file.neighbors.ids.rows();
  const std::size_t k = file.neighbors.ids.cols();
  const bool keeps_distances = is_container(arguments.output) || arguments.output.extension() == ".bin";
  if (has_distances(file.neighbors) && !keeps_distances)
    remark(session, fmt::format("{} holds ids only: the distances are left behind",
                                arguments.output.extension().string()));

  const Interrupt::Protection protection = session.interrupt->protect();
  if (is_container(arguments.output))
    write_container(arguments, std::move(file));
  else
    write_neighbors(arguments.output, file.neighbors);

  if (session.json)
    print(Json{{"content", "neighbors"}, {"rows", rows}, {"k", k}, {"output", arguments.output.string()}});
  else
    remark(session, fmt::format("wrote {} x {} neighbours to {}", rows, k, arguments.output.string()));
  return ExitCode::ok;
}

ExitCode run_convert(Session& session, const ConvertArguments& arguments) {
  const Content content = content_of(arguments.input);
  require_creatable(arguments.output);
  return content == Content::vectors ? convert_vectors(session, arguments)
                                     : convert_neighbors(session, arguments);
}

}  // namespace

void add_convert(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<ConvertArguments>();
  CLI::App* const command = add_command(
      app, session, "convert", "Convert vectors or neighbours between file formats",
      "  nearwise convert base.fvecs base.f16bin --type f16\n\n"
      "The suffixes choose the formats. Vectors: .npy .fbin .f16bin .bf16bin .u8bin .i8bin .fvecs .bvecs;\n"
      "neighbours: .nw .ivecs .ibin .bin .npy (integers). A conversion that can lose digits is done only "
      "when --type\n"
      "asks for it, rounds to nearest even, and refuses values beyond the range of the target.");
  add_path(*command, "input", arguments->input, "What to read")->required();
  add_path(*command, "output", arguments->output, "What to write")->required();
  add_word(*command, "--type", arguments->type, parse_element_type,
           "Element type of the output: f32, f16, bf16, u8 or i8");
  add_word(*command, "--metric", arguments->metric, parse_metric,
           "Metric of neighbours that go into a .nw and do not name it");
  add_bytes(*command, "--memory", arguments->memory,
            "Memory for the data on its way, 0 for no limit (256MiB)");
  command->callback([&session, arguments] {
    session.run = [&session, arguments] { return run_convert(session, *arguments); };
  });
}

}  // namespace nearwise::cli
