#include "plan/engine/plan_input.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "backend/context_state.h"
#include "core/check.h"
#include "core/checked.h"
#include "core/memory.h"
#include "io/container/container_writer.h"
#include "io/files/file_calls.h"
#include "io/files/input_file.h"

namespace nearwise::plan {
namespace {

// Small, because a task that gathers rows reads the whole piece of each.
constexpr std::size_t piece_bytes = std::size_t{128} << 10;
// Pieces that a thread reads at a time.
constexpr std::size_t task_pieces = 16;
constexpr double read_bytes_per_second = 2e9;  // an estimate

std::filesystem::path file_of(const PlanFiles& files) {
  return files.work / fmt::format("{}.nw", input_name);
}

std::size_t piece_rows(const RowsView& rows) {
  // An empty .fvecs file has no dimension.
  return std::max<std::size_t>(1, piece_bytes / std::max<std::size_t>(1, rows.stride_bytes()));
}
std::size_t pieces_of(const RowsView& rows) { return divide_up(rows.rows(), piece_rows(rows)); }

// In .*vecs with the dimensions between the rows.
std::uint64_t checksum_of(const RowsView& rows, std::size_t piece) {
  const std::size_t first = piece * piece_rows(rows);
  const std::size_t last = std::min(first + piece_rows(rows), rows.rows()) - 1;
  const std::byte* const begin = rows.row(first);
  const std::byte* const end = rows.row(last) + rows.dim() * element_size(rows.type());
  return XXH3_64bits(begin, static_cast<std::size_t>(end - begin));
}

constexpr const char* codes_section = "codes";

RowsView unverified_codes(const ContainerReader& reader, const CodeRows& expected) {
  const container::Section& codes = reader.section(codes_section).info();
  if (codes.element != container::Element::u8 || codes.columns < expected.dim || codes.rows != expected.rows)
    fail(ErrorCode::corrupt, "{}: {}: expected {} rows of at least {} bytes, found {} of {}", reader.source(),
         codes_section, expected.rows, expected.dim, codes.rows, codes.columns);
  return {reader.unverified_bytes(codes).data(), ElementType::u8, codes.rows, expected.dim, codes.columns};
}

std::string shape_of(const RowsView& rows) {
  return fmt::format("{} x {} {}", rows.rows(), rows.dim(), name(rows.type()));
}

void check_shape(const PlanFiles& files, const std::string& planned, const RowsView& rows) {
  require(planned == shape_of(rows), "plan: {} had {}, now has {}", files.vectors.native(), planned,
          shape_of(rows));
}

void for_each_piece(const Context& context, std::size_t first, std::size_t end,
                    const std::function<void(std::size_t)>& work) {
  context.state().threads->for_each(divide_up(end - first, task_pieces), [&](std::size_t task) {
    context.state().cancel.check();
    const std::size_t from = first + task * task_pieces;
    for (std::size_t piece = from; piece < std::min(end, from + task_pieces); ++piece) work(piece);
  });
}

// planned: the shape when the plan was made. Tasks read rows by their numbers in it.
void write_checksums(const Context& context, const PlanFiles& files, const std::string& planned) {
  const VectorFile file = VectorFile::open(files.vectors);
  const RowsView rows = file.rows();
  check_shape(files, planned, rows);
  const Context::State& state = context.state();
  Buffer<std::uint64_t> checksums(*state.budget, pieces_of(rows));
  ProgressMeter progress(state.options.progress, state.clock, "plan_input", checksums.size());
  for_each_piece(context, 0, checksums.size(), [&](std::size_t piece) {
    checksums[piece] = checksum_of(rows, piece);
    progress.add(1);
  });
  ContainerWriter writer(file_of(files), "plan_input");
  writer.write_metadata({{"shape", shape_of(rows)}});
  writer.write_section("checksums", MatrixView<const std::uint64_t>(checksums.data(), checksums.size(), 1));
  writer.commit();
}

}  // namespace

Task input_task(const PlanFiles& files, const RowsView& rows) {
  const std::uint64_t bytes = rows.rows() * rows.dim() * element_size(rows.type());
  Task task;
  task.planned.name = input_name;
  task.planned.read_bytes = bytes;
  task.planned.written_bytes = pieces_of(rows) * sizeof(std::uint64_t) + 3 * 4096;
  task.planned.memory_bytes = buffer_bytes(pieces_of(rows), sizeof(std::uint64_t));
  task.planned.seconds = static_cast<double>(bytes) / read_bytes_per_second;
  task.output = file_of(files);
  task.work = [files, planned = shape_of(rows)](const Context& context) {
    write_checksums(context, files, planned);
  };
  return task;
}

PlanInput::PlanInput(const Context& context, const PlanFiles& files)
    : context_(context.without_progress()),
      files_(files),
      file_(VectorFile::open(files.vectors)),
      reader_(ContainerReader::open(file_of(files))),
      rows_(file_->rows()),
      verified_(std::make_unique<std::atomic<bool>[]>(pieces_of(rows_))) {
  std::string shape;
  try {
    shape = reader_.metadata().at("shape").get<std::string>();
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorCode::corrupt, "{}: metadata: {}", reader_.source(), error.what());
  }
  check_shape(files, shape, rows_);
  if (reader_.section("checksums").info().rows != pieces_of(rows_))
    fail(ErrorCode::corrupt, "{}: expected {} checksums, found {}", reader_.source(), pieces_of(rows_),
         reader_.section("checksums").info().rows);
}

PlanInput::PlanInput(const Context& context, const CodeRows& codes)
    : context_(context.without_progress()),
      reader_(ContainerReader::open(codes.file)),
      rows_(unverified_codes(reader_, codes)),
      verified_(std::make_unique<std::atomic<bool>[]>(pieces_of(rows_))) {}

RowsView PlanInput::slice(std::size_t first, std::size_t count) const {
  if (count != 0)
    for_each_piece(context_, first / piece_rows(rows_), (first + count - 1) / piece_rows(rows_) + 1,
                   [&](std::size_t piece) { verify(piece); });
  return rows_.slice(first, count);
}

RowsView PlanInput::rows_at(std::size_t count, const std::function<std::size_t(std::size_t)>& row) const {
  std::vector<bool> wanted(pieces_of(rows_));
  for (std::size_t i = 0; i < count; ++i) wanted[row(i) / piece_rows(rows_)] = true;
  for_each_piece(context_, 0, wanted.size(), [&](std::size_t piece) {
    if (wanted[piece]) verify(piece);
  });
  return rows_;
}

void PlanInput::verify(std::size_t piece) const {
  if (verified_[piece].load(std::memory_order_relaxed)) return;
  const std::size_t first = piece * piece_rows(rows_);
  const std::size_t end = std::min(first + piece_rows(rows_), rows_.rows());
  if (file_) {
    const auto stored = reader_.section("checksums").rows<std::uint64_t>(piece, 1)(0, 0);
    require(checksum_of(rows_, piece) == stored,
            "plan: {} has changed since the plan began, in rows {} to {}: put the original back, or delete "
            "{} to begin again",
            files_.vectors.native(), first, end - 1, files_.work.native());
  } else {
    static_cast<void>(reader_.section(codes_section).rows<std::uint8_t>(first, end - first));
  }
  verified_[piece].store(true, std::memory_order_relaxed);
}

std::string stamp_of(const std::filesystem::path& path) {
  FileStatus found{};
  if (file_calls().stat(path.c_str(), &found) != 0) return "";
  return fmt::format("{} {} {}.{:09} {}.{:09}", found.st_size, found.st_ino, found.st_mtim.tv_sec,
                     found.st_mtim.tv_nsec, found.st_ctim.tv_sec, found.st_ctim.tv_nsec);
}

std::string sampled_checksum(const std::filesystem::path& path) {
  constexpr std::size_t samples = 1024;
  constexpr std::uint64_t sample_bytes = 4096;
  const InputFile file(path);
  std::vector<std::byte> bytes(sample_bytes);
  std::uint64_t checksum = file.size();
  for (std::size_t i = 0; i < samples; ++i) {
    const std::uint64_t last = file.size() - std::min(file.size(), sample_bytes);
    const std::uint64_t offset = last * i / (samples - 1);
    const std::span<std::byte> sample = std::span(bytes).first(std::min(file.size() - offset, sample_bytes));
    file.read(offset, sample);
    checksum = XXH3_64bits_withSeed(sample.data(), sample.size(), checksum);
  }
  return fmt::format("{:016x}", checksum);
}

}  // namespace nearwise::plan
