#include "cli/shared/files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "cli/shared/exit_code.h"
#include "cli/shared/text.h"
#include "nearwise/error.h"
#include "nearwise/graph/knn_graph.h"
#include "nearwise/machine.h"

namespace nearwise::cli {
namespace {

struct Suffix {
  std::string_view text;
  bool holds_vectors = false;
  bool holds_neighbors = false;
  std::optional<ElementType> type = {};  // of vectors
};
constexpr std::array suffixes = {
    Suffix{".nw", false, true},
    Suffix{".ivecs", false, true},
    Suffix{".ibin", false, true},
    Suffix{".bin", false, true},
    Suffix{".npy", true, true},
    Suffix{".fbin", true, false, ElementType::f32},
    Suffix{".f16bin", true, false, ElementType::f16},
    Suffix{".bf16bin", true, false, ElementType::bf16},
    Suffix{".u8bin", true, false, ElementType::u8},
    Suffix{".i8bin", true, false, ElementType::i8},
    Suffix{".fvecs", true, false, ElementType::f32},
    Suffix{".bvecs", true, false, ElementType::u8},
};

bool holds(const Suffix& suffix, Content content) {
  return content == Content::vectors ? suffix.holds_vectors : suffix.holds_neighbors;
}

Suffix suffix_named(std::string_view text) {
  const auto* const found = std::ranges::find(suffixes, text, &Suffix::text);
  return found == suffixes.end() ? Suffix() : *found;
}

// Of an output.
Suffix suffix_of(const std::filesystem::path& path) { return suffix_named(suffix_text(path)); }

// Of a file to read.
Suffix known_suffix_of(const std::filesystem::path& path) { return suffix_named("." + format_of(path)); }

std::string list_suffixes(Content content) {
  std::vector<std::string_view> list;
  for (const Suffix& suffix : suffixes)
    if (holds(suffix, content)) list.push_back(suffix.text);
  return fmt::format("{}", fmt::join(list, ", "));
}

// Of a file to read.
void require_holds(Content content, const std::filesystem::path& path) {
  if (holds(known_suffix_of(path), content)) return;
  if (known_suffix_of(path).text == suffix_of(path).text) return require_suffix_for(content, path);
  throw Error(ErrorCode::invalid_argument,
              fmt::format("'{}': a .{} file, by its content, cannot hold {}; use one of {}", path.string(),
                          format_of(path), content == Content::vectors ? "vectors" : "neighbours",
                          list_suffixes(content)));
}

// How the vectors of a file of another kind come into one that is read.
std::string_view way_to_vectors(const std::filesystem::path& path) {
  const std::string suffix = suffix_text(path);
  if (suffix == ".parquet")
    return "; nearwise.arrow.to_vectors, of the Python package, makes one of a column";
  if (suffix == ".nw") return "; an index is searched by 'nearwise index search'";
  for (const std::string_view other : {".csv", ".tsv", ".txt", ".npz", ".h5", ".hdf5", ".pt", ".pth", ".pkl"})
    if (suffix == other) return "; in Python, numpy.save writes an array as .npy";
  return "";
}

// The first bytes of a file; none if it cannot be read, which opening it then reports.
std::string head_of(const std::filesystem::path& path) {
  std::error_code missing;
  if (!std::filesystem::is_regular_file(path, missing))
    return {};  // opening a pipe would wait for its writer
  std::string head(256, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return head;
}

constexpr std::string_view npy_magic = "\x93NUMPY";
constexpr std::string_view container_magic = "\x89NWS\r\n\x1A\n";

// Looks for 'descr': '<i4' or '<i8' in the header of an .npy. An unreadable file counts as vectors.
bool is_npy_of_ids(const std::filesystem::path& path) {
  const std::string head = head_of(path);
  const std::size_t key = head.find("descr");
  if (key == std::string::npos) return false;
  const std::size_t value = head.find_first_of("<>|=", key);
  if (value == std::string::npos || value + 2 >= head.size()) return false;
  const std::string_view type = std::string_view(head).substr(value + 1, 2);
  return type == "i4" || type == "i8";
}

std::vector<Id> read_lines(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw Error(ErrorCode::not_found, fmt::format("open {}: cannot be read", path.string()));
  std::vector<Id> ids;
  for (std::string line; std::getline(file, line);) {
    const std::optional<Id> id = parse_integer(line);
    if (!id)
      throw InvalidData(
          fmt::format("'{}': line {}: expected an id, got '{}'", path.string(), ids.size() + 1, line));
    ids.push_back(*id);
  }
  if (file.bad()) throw Error(ErrorCode::io, fmt::format("read {}: failed", path.string()));
  return ids;
}

}  // namespace

std::string suffix_text(const std::filesystem::path& path) { return lower_case(path.extension().string()); }

bool is_container(const std::filesystem::path& path) { return suffix_text(path) == ".nw"; }

bool holds_npy(const std::filesystem::path& path) {
  const std::string head = head_of(path);
  return head.starts_with(npy_magic) || (suffix_text(path) == ".npy" && !head.starts_with(container_magic));
}

bool holds_container(const std::filesystem::path& path) {
  const std::string head = head_of(path);
  return head.starts_with(container_magic) || (is_container(path) && !head.starts_with(npy_magic));
}

std::string format_of(const std::filesystem::path& path) {
  if (holds_npy(path)) return "npy";
  if (holds_container(path)) return "nw";
  const std::string suffix = suffix_text(path);
  return suffix.empty() ? suffix : suffix.substr(1);
}

Content content_of(const std::filesystem::path& path) {
  const Suffix suffix = known_suffix_of(path);
  if (suffix.holds_vectors && suffix.holds_neighbors)
    return is_npy_of_ids(path) ? Content::neighbors : Content::vectors;
  if (suffix.holds_vectors) return Content::vectors;
  if (suffix.holds_neighbors) return Content::neighbors;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("'{}': unknown suffix '{}'; vectors: {}; neighbours: {}", path.string(),
                          path.extension().string(), list_suffixes(Content::vectors),
                          list_suffixes(Content::neighbors)));
}

std::optional<ElementType> element_type_of(const std::filesystem::path& path) { return suffix_of(path).type; }

void require_suffix_for(Content content, const std::filesystem::path& path) {
  if (holds(suffix_of(path), content)) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("'{}': suffix '{}' cannot hold {}; use one of {}{}", path.string(),
                          path.extension().string(), content == Content::vectors ? "vectors" : "neighbours",
                          list_suffixes(content), content == Content::vectors ? way_to_vectors(path) : ""));
}

void require_container(const std::filesystem::path& path, const std::string& what) {
  if (!is_container(path))
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}': suffix '{}' cannot hold {}; use .nw",
                                                         path.string(), path.extension().string(), what));
}

ContainerInfo inspect_as(const std::filesystem::path& path, const std::string& what,
                         std::initializer_list<std::string_view> kinds) {
  if (!holds_container(path)) require_container(path, what);
  ContainerInfo info = inspect(path);
  if (std::ranges::find(kinds, info.kind) == kinds.end())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}': expected {}, got a file of {}", path.string(), what, info.kind));
  return info;
}

void require_creatable(const std::filesystem::path& path) {
  const auto refuse = [&path](const std::string& why) {
    throw Error(ErrorCode::cannot_create, fmt::format("'{}': cannot be created: {}", path.string(), why));
  };
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) refuse("it is a folder");
  const std::filesystem::path folder =
      path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  if (!std::filesystem::is_directory(folder, ignored))
    refuse(fmt::format("there is no folder '{}'", folder.string()));
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    refuse(fmt::format("the folder '{}' cannot be written to: {}", folder.string(),
                       std::generic_category().message(errno)));
}

VectorFile open_vectors(const std::filesystem::path& path) {
  require_holds(Content::vectors, path);
  return blame_data([&] { return VectorFile::open(path); });
}

VectorReader read_vectors(const std::filesystem::path& path, std::size_t max_bytes) {
  require_holds(Content::vectors, path);
  return blame_data([&] { return VectorReader(path, max_bytes); });
}

NeighborFile read_neighbor_file(const std::filesystem::path& path) {
  require_holds(Content::neighbors, path);
  NeighborFile file;
  const bool is_saved = holds_container(path);
  if (is_saved && blame_data([&] { return inspect(path).kind; }) == "graph") {
    KnnGraph graph = blame_data([&] { return load_knn_graph(path); });
    file.neighbors = std::move(graph.neighbors);
    file.metric = graph.metric;
  } else if (is_saved) {
    SavedNeighbors saved = blame_data([&] { return load_neighbors(path); });
    file.neighbors = std::move(saved.neighbors);
    file.metric = saved.metric;
    file.provenance = std::move(saved.provenance);
  } else {
    file.neighbors = blame_data([&] { return read_neighbors(path); });
  }
  return file;
}

bool has_distances(const Neighbors& neighbors) {
  return neighbors.distances.rows() == neighbors.ids.rows() &&
         neighbors.distances.cols() == neighbors.ids.cols();
}

std::vector<Id> read_ids(const std::filesystem::path& path) {
  std::vector<Id> ids;
  const std::string suffix = "." + format_of(path);
  if (suffix == ".txt") {
    ids = read_lines(path);
  } else if (suffix == ".npy" || suffix == ".ivecs" || suffix == ".ibin") {
    const Matrix<Id> read = read_neighbor_file(path).neighbors.ids;
    ids.assign(read.data(), read.data() + read.rows() * read.cols());
  } else {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}': suffix '{}' cannot hold ids; use one of .npy, .ivecs, .ibin, .txt",
                            path.string(), suffix));
  }
  const auto bad = std::ranges::find_if(ids, [](Id id) { return id < 0; });
  if (bad != ids.end())
    throw InvalidData(fmt::format("'{}': ids must be at least 0, got {} at position {}", path.string(), *bad,
                                  bad - ids.begin()));
  return ids;
}

void require_fits(const std::filesystem::path& path, std::uint64_t limit) {
  std::error_code missing;
  const std::uintmax_t bytes = std::filesystem::file_size(path, missing);
  if (missing) return;
  // 32-bit ids become 64-bit ones; everything else keeps its size.
  const std::uintmax_t needed = holds_container(path) ? bytes : 2 * bytes;
  if (needed > limit)
    throw Error(ErrorCode::out_of_memory,
                fmt::format("'{}': needs up to {} of memory, --memory-limit is {}", path.string(),
                            format_bytes(needed), format_bytes(limit)));
}

std::optional<std::string> fixed_time() {
  const char* const fixed = std::getenv("SOURCE_DATE_EPOCH");
  if (fixed == nullptr || *fixed == '\0') return std::nullopt;
  const std::optional<std::int64_t> seconds = parse_integer(fixed);
  if (!seconds)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("SOURCE_DATE_EPOCH must be seconds since 1970, got '{}'", fixed));
  return format_utc(*seconds);
}

std::string time_of_run() {
  if (const std::optional<std::string> fixed = fixed_time()) return *fixed;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return format_utc(std::chrono::duration_cast<std::chrono::seconds>(now).count());
}

Provenance describe_run(const Session& session) {
  std::string command = "nearwise";
  for (const std::string& argument : session.arguments) command += " " + quote(argument);
  return {{"command", command}, {"time", time_of_run()}, {"version", "nearwise " + version()}};
}

std::string describe_input(const std::filesystem::path& path, RowsView rows) {
  return fmt::format("{}, {} bytes, {} x {} {}", path.string(), std::filesystem::file_size(path), rows.rows(),
                     rows.dim(), name(rows.type()));
}

void write_result(const std::filesystem::path& path, Metric metric, Provenance provenance,
                  Neighbors neighbors) {
  if (!is_container(path)) return write_neighbors(path, neighbors);
  save({.neighbors = std::move(neighbors), .metric = metric, .provenance = std::move(provenance)}, path);
}

void check_output(const Session& session, const std::filesystem::path& output,
                  std::initializer_list<std::filesystem::path> inputs) {
  require_creatable(output);
  for (const std::filesystem::path& input : inputs) {
    std::error_code missing;
    if (std::filesystem::equivalent(input, output, missing))
      refuse(session, "the output '{}' would replace an input", output.string());
  }
}

void check_outputs_differ(const Session& session, std::initializer_list<std::filesystem::path> outputs) {
  std::map<std::filesystem::path, std::filesystem::path> seen;  // absolute: as given
  for (const std::filesystem::path& output : outputs) {
    if (output.empty()) continue;
    const auto [first, is_new] = seen.emplace(std::filesystem::absolute(output).lexically_normal(), output);
    if (!is_new)
      refuse(session, "outputs must be different files, '{}' and '{}' are the same", first->second.string(),
             output.string());
  }
}

}  // namespace nearwise::cli
