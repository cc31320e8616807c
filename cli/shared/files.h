// What the command line has to know about files beyond the library's readers and writers: which kind of content a
// name promises, and whether an output can be made at all before hours of work go into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "nearwise/neighbors.h"
#include "nearwise/types.h"
#include "nearwise/vector_file.h"

namespace nearwise::cli {

enum class Content : std::uint8_t { vectors, neighbors };

// By suffix; a .npy that exists is vectors or neighbours by its element type.
// Throws Error(invalid_argument) with the known suffixes for any other.
Content content_of(const std::filesystem::path& path);

// The element type a suffix stands for; none for .npy, which holds several. Vectors only.
std::optional<ElementType> element_type_of(const std::filesystem::path& path);

// Throws Error(invalid_argument) unless the suffix can hold such content, listing those that can.
void require_suffix_for(Content content, const std::filesystem::path& path);

// Throws Error(cannot_create) if the folder is not there or not ours to write, or the name is a folder's.
void require_creatable(const std::filesystem::path& path);

// The library's readers of vectors. An unknown suffix is Error(invalid_argument), content they cannot hold (an .npy of
// doubles) is InvalidData.
VectorFile open_vectors(const std::filesystem::path& path);
VectorReader read_vectors(const std::filesystem::path& path, std::size_t max_bytes);

// Neighbours from any of their formats, with what only a container knows.
struct NeighborFile {
  Neighbors neighbors;
  std::optional<Metric> metric;
  std::map<std::string, std::string> provenance;
};
NeighborFile read_neighbor_file(const std::filesystem::path& path);

// Most formats hold ids only; their distances come back as a matrix of 0 x 0.
bool has_distances(const Neighbors& neighbors);

// Throws Error(out_of_memory) if reading the neighbours of `path` could take more than `limit` bytes (0: no limit).
void require_fits(const std::filesystem::path& path, std::uint64_t limit);

// When this run takes place, in UTC. SOURCE_DATE_EPOCH (seconds since 1970) replaces the clock, so that files can
// be reproduced byte for byte.
std::string time_of_run();

bool is_container(const std::filesystem::path& path);

}  // namespace nearwise::cli
