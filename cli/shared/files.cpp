#include "cli/shared/files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string_view>
#include <system_error>

#include "cli/shared/exit_code.h"
#include "cli/shared/text.h"
#include "nearwise/error.h"
#include "nearwise/knn_graph.h"

namespace nearwise::cli {
namespace {

struct VectorSuffix {
  std::string_view suffix;
  std::optional<ElementType> type;
};
constexpr std::array vector_suffixes = {
    VectorSuffix{".npy", std::nullopt},        VectorSuffix{".fbin", ElementType::f32},
    VectorSuffix{".f16bin", ElementType::f16}, VectorSuffix{".bf16bin", ElementType::bf16},
    VectorSuffix{".u8bin", ElementType::u8},   VectorSuffix{".i8bin", ElementType::i8},
    VectorSuffix{".fvecs", ElementType::f32},  VectorSuffix{".bvecs", ElementType::u8},
};
constexpr std::array<std::string_view, 5> neighbor_suffixes = {".nw", ".ivecs", ".ibin", ".bin", ".npy"};

bool holds_vectors(std::string_view suffix) {
  for (const VectorSuffix& known : vector_suffixes)
    if (known.suffix == suffix) return true;
  return false;
}

bool holds_neighbors(std::string_view suffix) {
  for (const std::string_view known : neighbor_suffixes)
    if (known == suffix) return true;
  return false;
}

std::string list_suffixes(Content content) {
  std::string list;
  const auto add = [&list](std::string_view suffix) {
    list += (list.empty() ? "" : ", ") + std::string(suffix);
  };
  if (content == Content::vectors)
    for (const VectorSuffix& known : vector_suffixes) add(known.suffix);
  else
    for (const std::string_view known : neighbor_suffixes) add(known);
  return list;
}

// Looks for 'descr': '<i4' or '<i8' in the header of an .npy. An unreadable file counts as vectors; opening
// it then reports the problem.
bool is_npy_of_ids(const std::filesystem::path& path) {
  std::string head(256, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  const std::size_t key = head.find("descr");
  if (key == std::string::npos) return false;
  const std::size_t value = head.find_first_of("<>|=", key);
  if (value == std::string::npos || value + 2 >= head.size()) return false;
  const std::string_view type = std::string_view(head).substr(value + 1, 2);
  return type == "i4" || type == "i8";
}

Id parse_id(const std::string& line, std::size_t number, const std::filesystem::path& path) {
  Id id = 0;
  const auto end = std::from_chars(line.data(), line.data() + line.size(), id);
  if (end.ec != std::errc() || end.ptr != line.data() + line.size())
    throw InvalidData(fmt::format("'{}': line {}: expected an id, got '{}'", path.string(), number, line));
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

}  // namespace

bool is_container(const std::filesystem::path& path) { return path.extension() == ".nw"; }

Content content_of(const std::filesystem::path& path) {
  const std::string suffix = path.extension().string();
  if (suffix == ".npy") return is_npy_of_ids(path) ? Content::neighbors : Content::vectors;
  if (holds_vectors(suffix)) return Content::vectors;
  if (holds_neighbors(suffix)) return Content::neighbors;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("'{}': unknown suffix '{}'; vectors: {}; neighbours: {}", path.string(), suffix,
                          list_suffixes(Content::vectors), list_suffixes(Content::neighbors)));
}

std::optional<ElementType> element_type_of(const std::filesystem::path& path) {
  const std::string suffix = path.extension().string();
  for (const VectorSuffix& known : vector_suffixes)
    if (known.suffix == suffix) return known.type;
  return std::nullopt;
}

void require_suffix_for(Content content, const std::filesystem::path& path) {
  const std::string suffix = path.extension().string();
  const bool is_vectors = content == Content::vectors;
  if (is_vectors ? holds_vectors(suffix) : holds_neighbors(suffix)) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("'{}': suffix '{}' cannot hold {}; use one of {}", path.string(), suffix,
                          is_vectors ? "vectors" : "neighbours", list_suffixes(content)));
}

void require_container(const std::filesystem::path& path, const std::string& what) {
  if (!is_container(path))
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}': suffix '{}' cannot hold {}; use .nw",
                                                         path.string(), path.extension().string(), what));
}

ContainerInfo inspect_as(const std::filesystem::path& path, const std::string& what,
                         std::initializer_list<std::string_view> kinds) {
  require_container(path, what);
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
  require_suffix_for(Content::vectors, path);
  return blame_data([&] { return VectorFile::open(path); });
}

VectorReader read_vectors(const std::filesystem::path& path, std::size_t max_bytes) {
  require_suffix_for(Content::vectors, path);
  return blame_data([&] { return VectorReader(path, max_bytes); });
}

NeighborFile read_neighbor_file(const std::filesystem::path& path) {
  require_suffix_for(Content::neighbors, path);
  NeighborFile file;
  if (is_container(path) && blame_data([&] { return inspect(path).kind; }) == "graph") {
    KnnGraph graph = blame_data([&] { return load_knn_graph(path); });
    file.neighbors = std::move(graph.neighbors);
    file.metric = graph.metric;
  } else if (is_container(path)) {
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
  const std::string suffix = path.extension().string();
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
  if (limit == 0 || missing) return;
  // 32-bit ids become 64-bit ones; everything else keeps its size.
  const std::uintmax_t needed = is_container(path) ? bytes : 2 * bytes;
  if (needed > limit)
    throw Error(ErrorCode::out_of_memory,
                fmt::format("'{}': needs up to {} of memory, --memory-limit is {}", path.string(),
                            format_bytes(needed), format_bytes(limit)));
}

std::string time_of_run() {
  const char* const fixed = std::getenv("SOURCE_DATE_EPOCH");
  if (fixed == nullptr || *fixed == '\0') {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return format_utc(std::chrono::duration_cast<std::chrono::seconds>(now).count());
  }
  const std::string_view text = fixed;
  std::int64_t seconds = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("SOURCE_DATE_EPOCH must be seconds since 1970, got '{}'", text));
  return format_utc(seconds);
}

}  // namespace nearwise::cli
