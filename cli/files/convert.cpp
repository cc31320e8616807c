// nearwise convert: vectors or neighbours from one file format to another. Vectors are converted in chunks
// within --memory-limit; neighbours are read whole.
#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <vector>

#include "cli/commands.h"
#include "cli/shared/command.h"
#include "cli/shared/elements.h"
#include "cli/shared/files.h"
#include "cli/shared/text.h"
#include "cli/shared/work.h"
#include "nearwise/machine.h"
#include "nearwise/storage.h"
#include "nearwise/vector_file.h"

namespace nearwise::cli {
namespace {

struct ConvertArguments {
  std::filesystem::path input;
  std::filesystem::path output;
  std::optional<ElementType> type;  // none: that of the output's suffix, or the input's
  std::optional<Metric> metric;     // of neighbours without one that become a container
  std::uint64_t memory_limit = std::uint64_t{256} << 20;
  std::optional<std::size_t> limit_rows;
};

// Large enough for the disk, small enough for prompt Ctrl-C and progress.
constexpr std::uint64_t largest_chunk_bytes = std::uint64_t{8} << 20;

ElementType choose_type(const Session& session, const ConvertArguments& arguments, ElementType from) {
  if (arguments.type) return *arguments.type;
  const ElementType to = element_type_of(arguments.output).value_or(from);
  if (!is_exact(from, to))
    refuse(session, "{} to {} loses precision; to allow it, add --type {}", name(from), name(to), name(to));
  return to;
}

ExitCode convert_vectors(Session& session, const ConvertArguments& arguments) {
  require_suffix_for(Content::vectors, arguments.output);
  // A quarter each: the chunk read, the chunk converted, and the buffers of reader and writer.
  const std::uint64_t share = arguments.memory_limit / 4;
  const auto chunk_bytes = static_cast<std::size_t>(std::clamp<std::uint64_t>(share, 1, largest_chunk_bytes));
  VectorReader reader = read_vectors(arguments.input, chunk_bytes);
  const ElementType to = choose_type(session, arguments, reader.type());
  const std::uint64_t row_bytes = reader.dim() * std::max(element_size(reader.type()), element_size(to));
  if (row_bytes > share)
    throw Error(
        ErrorCode::out_of_memory,
        fmt::format("convert: --memory-limit must be at least 4 vectors of '{}' ({} each), got {}",
                    arguments.input.string(), format_bytes(row_bytes), format_bytes(arguments.memory_limit)));

  const Interrupt::Protection protection = session.interrupt->protect();
  VectorWriter writer(arguments.output, to, reader.dim());
  std::vector<std::byte> converted;
  const auto write = [&](RowsView rows, std::size_t first_row) {
    if (rows.type() == to) return writer.append(rows);
    const std::size_t stride_bytes = rows.dim() * element_size(to);
    converted.resize(rows.rows() * stride_bytes);
    convert_rows(rows, to, converted.data(), first_row);
    writer.append(RowsView(converted.data(), to, rows.rows(), rows.dim(), stride_bytes));
  };
  const std::size_t rows = read_chunks(
      session, reader, write, arguments.limit_rows.value_or(std::numeric_limits<std::size_t>::max()));
  writer.commit();

  conclude(session,
           {{"content", "vectors"},
            {"rows", rows},
            {"dim", reader.dim()},
            {"from", name(reader.type())},
            {"to", name(to)},
            {"output", arguments.output.string()}},
           fmt::format("wrote {} x {} {} to {}", rows, reader.dim(), name(to), arguments.output.string()));
  return ExitCode::ok;
}

// The first rows of a matrix; all of one that has fewer.
template <typename T>
Matrix<T> first_rows(const Matrix<T>& matrix, std::size_t most_rows) {
  Matrix<T> first(std::min(matrix.rows(), most_rows), matrix.cols());
  std::copy_n(matrix.data(), first.rows() * first.cols(), first.data());
  return first;
}

void write_container(const Session& session, const ConvertArguments& arguments, NeighborFile file) {
  if (!has_distances(file.neighbors))
    refuse(session, "a .nw file needs distances, and '{}' has none; convert it to .ivecs, .ibin or .npy",
           arguments.input.string());
  if (file.metric && arguments.metric && *file.metric != *arguments.metric)
    refuse(session, "--metric must be that of '{}', {}, got {}", arguments.input.string(), name(*file.metric),
           name(*arguments.metric));
  const std::optional<Metric> metric = file.metric ? file.metric : arguments.metric;
  if (!metric)
    refuse(session, "a .nw file needs a metric, and '{}' has none; give it by --metric",
           arguments.input.string());
  SavedNeighbors saved;
  saved.neighbors = std::move(file.neighbors);
  saved.metric = *metric;
  saved.provenance = std::move(file.provenance);
  // A container that is copied keeps its provenance.
  if (saved.provenance.empty())
    saved.provenance = {{"converted_from", arguments.input.string()},
                        {"time", time_of_run()},
                        {"version", "nearwise " + version()}};
  save(saved, arguments.output);
}

ExitCode convert_neighbors(Session& session, const ConvertArguments& arguments) {
  if (arguments.type) refuse(session, "--type is for vectors, '{}' has neighbours", arguments.input.string());
  require_suffix_for(Content::neighbors, arguments.output);
  require_fits(arguments.input, arguments.memory_limit);
  NeighborFile file = read_neighbor_file(arguments.input);
  const std::size_t all_rows = file.neighbors.ids.rows();
  const std::size_t rows = std::min(all_rows, arguments.limit_rows.value_or(all_rows));
  if (rows < all_rows) {
    file.neighbors = {first_rows(file.neighbors.ids, rows), first_rows(file.neighbors.distances, rows)};
    if (!file.provenance.empty()) file.provenance["rows"] = fmt::format("the first {} of {}", rows, all_rows);
  }
  const std::size_t k = file.neighbors.ids.cols();
  const bool keeps_distances = is_container(arguments.output) || suffix_text(arguments.output) == ".bin";
  if (has_distances(file.neighbors) && !keeps_distances)
    remark(session,
           fmt::format("{} holds ids only: distances are dropped", arguments.output.extension().string()));

  const Interrupt::Protection protection = session.interrupt->protect();
  if (is_container(arguments.output))
    write_container(session, arguments, std::move(file));
  else
    write_neighbors(arguments.output, file.neighbors);

  conclude(session,
           {{"content", "neighbors"}, {"rows", rows}, {"k", k}, {"output", arguments.output.string()}},
           fmt::format("wrote {} x {} neighbours to {}", rows, k, arguments.output.string()));
  return ExitCode::ok;
}

ExitCode run_convert(Session& session, const ConvertArguments& arguments) {
  const Content content = content_of(arguments.input);
  require_creatable(arguments.output);
  return content == Content::vectors ? convert_vectors(session, arguments)
                                     : convert_neighbors(session, arguments);
}

}  // namespace

void add_convert(CLI::App& parent, Session& session) {
  const auto [parser, arguments] = add_command(
      parent, session, run_convert, "convert", "Convert vectors or neighbours between file formats",
      "  nearwise convert base.fvecs --type f16 -o base.f16bin\n"
      "  nearwise convert base.fbin --limit-rows 100000 -o sample.fbin\n\n"
      "The suffixes choose the formats. Vectors: .npy .fbin .f16bin .bf16bin .u8bin .i8bin .fvecs .bvecs;\n"
      "neighbours: .nw .ivecs .ibin .bin .npy (integers). Conversions that lose precision need --type; they\n"
      "round to nearest, ties to even, and refuse values beyond the range of the target.");
  add_path(parser, "input", arguments.input, "File to read")->required();
  add_output(parser, arguments.output, "File to write");
  add_choice(parser, "--type", arguments.type,
             {ElementType::f32, ElementType::f16, ElementType::bf16, ElementType::u8, ElementType::i8},
             "Element type of the output (default: that of the suffix, or the input's)");
  add_choice(parser, "--metric", arguments.metric, all_metrics,
             "Metric of neighbours that have none, for a .nw output");
  add_count(parser, "--limit-rows", arguments.limit_rows, 1, "Only the first N rows (default: all)");
  add_memory_limit(parser, arguments.memory_limit, "Bound on buffers", "256MiB");
}

}  // namespace nearwise::cli
