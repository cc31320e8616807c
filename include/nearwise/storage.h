// Saved search results and names, and inspection of any container file (docs/format.md).
//
// Saving is atomic and durable: after a crash the file is the old or the new one, complete. Loading verifies
// all checksums and the structure; damage throws Error(corrupt) naming section and offset.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "nearwise/export.h"
#include "nearwise/neighbors.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

// The result of a search with its metric and origin.
struct SavedNeighbors {
  Neighbors neighbors;
  Metric metric = Metric::sqeuclidean;
  std::map<std::string, std::string> provenance;  // free text: command, inputs, version, time
};

// Throws Error(invalid_argument) for ids below no_id, NaN, k = 0, or ids and distances of different shapes.
void save(const SavedNeighbors& result, const std::filesystem::path& path);
// Throws Error(unsupported), "needs nearwise >= X", for a later format version.
SavedNeighbors load_neighbors(const std::filesystem::path& path);

// Names of vectors: the name of id i is text[offsets[i] .. offsets[i + 1]). The Python package reads and
// writes them as StringIds.
struct SavedNames {
  std::vector<std::uint64_t> offsets = {0};  // [names + 1]
  std::string text;                          // UTF-8, no name twice
};

// Throws Error(invalid_argument) for offsets or names that violate this.
void save(const SavedNames& names, const std::filesystem::path& path);
SavedNames load_names(const std::filesystem::path& path);

struct SectionInfo {
  std::string name;
  std::string element;     // "f32", "i64", "json", ...
  std::uint64_t rows = 0;  // an array [rows, columns]
  std::uint64_t columns = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;  // checksummed blocks
};

// Description of a container. Header, section table and metadata are verified, other sections are not read.
struct ContainerInfo {
  std::string kind;  // "neighbors", ...
  int version_major = 0;
  int version_minor = 0;
  std::uint64_t bytes = 0;
  std::map<std::string, std::string> metadata;  // nested keys joined by dots: "provenance.command"
  std::vector<SectionInfo> sections;
};
ContainerInfo inspect(const std::filesystem::path& path);

// Verifies every checksum and the structure of the whole file; throws Error(corrupt) naming the first damage.
ContainerInfo verify(const std::filesystem::path& path);

}  // namespace nearwise
