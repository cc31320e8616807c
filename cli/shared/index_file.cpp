#include "cli/shared/index_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>

#include "cli/shared/elements.h"
#include "cli/shared/files.h"
#include "nearwise/storage.h"

namespace nearwise::cli {
namespace {

// Some seconds of work at most, and large enough that lists grow seldom.
constexpr std::size_t batch_rows = 65536;

void require_index_suffix(const std::filesystem::path& path) {
  if (!is_container(path))
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}': suffix '{}' cannot hold an index; .nw can",
                                                         path.string(), path.extension().string()));
}

ContainerInfo inspect_index(const std::filesystem::path& path) {
  require_index_suffix(path);
  ContainerInfo info = inspect(path);
  if (info.kind != "ivf")
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}': an index expected, the file holds {}", path.string(), info.kind));
  return info;
}

Id parse_id(const std::string& line, std::size_t number, const std::filesystem::path& path) {
  Id id = 0;
  const auto end = std::from_chars(line.data(), line.data() + line.size(), id);
  if (end.ec != std::errc() || end.ptr != line.data() + line.size())
    throw InvalidData(fmt::format("'{}': line {}: expected an id, found '{}'", path.string(), number, line));
  return id;
}

std::vector<Id> read_lines(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw Error(ErrorCode::not_found, fmt::format("open {}: cannot be read", path.string()));
  std::vector<Id> ids;
  std::size_t number = 0;
  for (std::string line; std::getline(file, line);) ids.push_back(parse_id(line, ++number, path));
  if (file.bad()) throw Error(ErrorCode::io, fmt::format("read {}: failed", path.string()));
  return ids;
}

Json describe_measured(const Ivf& index) {
  if (!index.calibration()) return nullptr;
  const Calibration& measured = *index.calibration();
  return {{"recall", measured.recall},   {"recall_of_codes", measured.recall_of_codes},
          {"target", measured.target},   {"reached", measured.reached()},
          {"queries", measured.queries}, {"neighbors", measured.neighbors},
          {"rows", measured.rows}};
}

std::string words_of(const Calibration& measured, const Ivf& index) {
  const std::string look = measured.candidates == 0
                               ? ""
                               : fmt::format(", with --rows and {} candidates ({:.3f} without)",
                                             measured.candidates, measured.recall_of_codes);
  const std::string found = fmt::format(
      "{:.3f} of the {} nearest found in {} of {} lists{}, measured with {} of {} rows", measured.recall,
      measured.neighbors, measured.probes, index.lists(), look, measured.queries, measured.rows);
  return measured.reached() ? found
                            : fmt::format("warning: recall {} cannot be reached: {}", measured.target, found);
}

}  // namespace

Context open_silent_context(const MachineArguments& arguments, std::uint64_t seed) {
  ProgressBar nobody(ProgressStyle::none, "", "", 0);
  return open_context(arguments, nobody, seed).with_progress({});
}

Ivf open_index(const Context& context, const std::filesystem::path& path) {
  inspect_index(path);
  return load_ivf(context, path);
}

std::uint64_t count_index_rows(const std::filesystem::path& path) {
  const ContainerInfo info = inspect_index(path);
  const auto ids = std::ranges::find(info.sections, "ids", &SectionInfo::name);
  return ids == info.sections.end() ? 0 : ids->rows;
}

void check_index_output(const std::filesystem::path& output) {
  require_index_suffix(output);
  require_creatable(output);
}

std::vector<Id> read_ids(const std::filesystem::path& path) {
  std::vector<Id> ids;
  if (path.extension() == ".txt") {
    ids = read_lines(path);
  } else {
    const std::string suffix = path.extension().string();
    if (suffix != ".npy" && suffix != ".ivecs" && suffix != ".ibin")
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("'{}': suffix '{}' cannot hold ids; those that can are .npy, .ivecs, .ibin, .txt",
                      path.string(), suffix));
    const Matrix<Id> read = read_neighbor_file(path).neighbors.ids;
    ids.assign(read.data(), read.data() + read.rows() * read.cols());
  }
  const auto bad = std::ranges::find_if(ids, [](Id id) { return id < 0; });
  if (bad != ids.end())
    throw InvalidData(fmt::format("'{}': ids of 0 or larger expected, {} found at place {}", path.string(),
                                  *bad, bad - ids.begin()));
  return ids;
}

void add_rows(const Session& session, const Context& context, Ivf& index, RowsView rows,
              std::span<const Id> ids, ProgressBar& bar) {
  for (std::size_t first = 0; first < rows.rows(); first += batch_rows) {
    session.interrupt->check();
    const std::size_t count = std::min(batch_rows, rows.rows() - first);
    const RowsView batch = rows.slice(first, count);
    require_finite(batch, first);
    index.add(context, batch, ids.empty() ? ids : ids.subspan(first, count));
    bar.update(first + count, rows.rows());
  }
}

void check_recall(double recall) {
  if (!(recall > 0 && recall <= 1))
    throw CLI::ValidationError("--recall", fmt::format("expected above 0 and at most 1, given {}", recall));
}

void measure_index(Session& session, const Context& machine, Ivf& index, RowsView rows,
                   const CalibrationOptions& options) {
  ProgressBar bar(choose_progress_style(session.quiet), "measure", "rows", index.size());
  const Context own = machine.with_progress(bar.callback());
  const Interrupt::Protection protection = session.interrupt->protect([&own] { own.cancel(); });
  index.calibrate(own, rows, options);
}

void record_run(const Provenance& run, Ivf& index) {
  Provenance provenance = index.provenance();
  for (const auto& [key, text] : run) provenance.insert_or_assign(key, text);
  index.set_provenance(std::move(provenance));
}

Json describe_index(const Ivf& index, const std::filesystem::path& output) {
  return {{"rows", index.size()},
          {"dim", index.dim()},
          {"lists", index.lists()},
          {"codec", index.codec()},
          {"code_bytes", index.code_bytes()},
          {"metric", name(index.metric())},
          {"probes", index.probes()},
          {"candidates", index.candidates()},
          {"measured", describe_measured(index)},
          {"output", output.string()}};
}

void tell_of_index(const Session& session, const Json& json, const Ivf& index,
                   const std::filesystem::path& output, const std::string& what) {
  if (session.json) {
    print(json);
    return;
  }
  remark(session, fmt::format("wrote {} rows in {} lists to {}: {}", index.size(), index.lists(),
                              output.string(), what));
  if (index.calibration()) remark(session, words_of(*index.calibration(), index));
}

}  // namespace nearwise::cli
