// File formats by suffix, readers with the exit codes of the command line, and outputs: checked before the
// work, with the provenance of the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/shared/session.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"
#include "nearwise/storage.h"
#include "nearwise/types.h"
#include "nearwise/vector_file.h"

namespace nearwise::cli {

using Provenance = std::map<std::string, std::string>;

enum class Content : std::uint8_t { vectors, neighbors };

// What a file to read holds: by its magic number (.npy, .nw), else by suffix; an .npy by its element type.
// Throws Error(invalid_argument) listing the known suffixes.
Content content_of(const std::filesystem::path& path);

// The element type of a vector suffix; none for .npy, which holds several.
std::optional<ElementType> element_type_of(const std::filesystem::path& path);

// ".fbin", also of base.FBIN: the library matches suffixes without regard to case, too.
std::string suffix_text(const std::filesystem::path& path);

// Throws Error(invalid_argument), listing the suffixes that can hold such content, if this one cannot.
void require_suffix_for(Content content, const std::filesystem::path& path);
// The same for the objects kept in .nw files; `what` is "an index", "a graph".
void require_container(const std::filesystem::path& path, const std::string& what);
// Also throws Error(invalid_argument) if the file holds another kind of object. Returns what the file says of
// itself.
ContainerInfo inspect_as(const std::filesystem::path& path, const std::string& what,
                         std::initializer_list<std::string_view> kinds);

// Throws Error(cannot_create) if the folder does not exist or is not writable, or the name is a folder's.
void require_creatable(const std::filesystem::path& path);

// Unsupported content (an .npy of doubles) is InvalidData, an unknown suffix Error(invalid_argument).
VectorFile open_vectors(const std::filesystem::path& path);
VectorReader read_vectors(const std::filesystem::path& path, std::size_t max_bytes);

// Neighbours from any of their formats; metric and provenance only from a container.
struct NeighborFile {
  Neighbors neighbors;
  std::optional<Metric> metric;
  Provenance provenance;
};
NeighborFile read_neighbor_file(const std::filesystem::path& path);

// Most formats hold ids only; their distances are read as a 0 x 0 matrix.
bool has_distances(const Neighbors& neighbors);

// All ids of a file in their order, whatever its shape: .npy, .ivecs, .ibin, or .txt with one id per line. A
// negative id is InvalidData.
std::vector<Id> read_ids(const std::filesystem::path& path);

// Throws Error(out_of_memory) if reading the neighbours of `path` could take more than `limit` bytes.
void require_fits(const std::filesystem::path& path, std::uint64_t limit);

// The time in UTC that SOURCE_DATE_EPOCH (seconds since 1970) fixes, for files that are reproducible byte for
// byte.
std::optional<std::string> fixed_time();

// That time, or the current one.
std::string time_of_run();

// Of an output, by suffix.
bool is_container(const std::filesystem::path& path);
// Of a file to read: by its magic number, or by suffix if it is damaged or missing.
bool holds_container(const std::filesystem::path& path);
bool holds_npy(const std::filesystem::path& path);
// "fbin": the suffix under which a file to read would be known.
std::string format_of(const std::filesystem::path& path);

// Command, version and time of this run; commands add their inputs by describe_input().
Provenance describe_run(const Session& session);
std::string describe_input(const std::filesystem::path& path, RowsView rows);

// In the format of the suffix; metric and provenance are kept by .nw only.
void write_result(const std::filesystem::path& path, Metric metric, Provenance provenance,
                  Neighbors neighbors);

// Reports before the work what would fail after it: an output that cannot be created, or is an input.
void check_output(const Session& session, const std::filesystem::path& output,
                  std::initializer_list<std::filesystem::path> inputs);
// Refuses two outputs that are the same file, of which only the later one would be left. Empty paths do not
// count.
void check_outputs_differ(const Session& session, std::initializer_list<std::filesystem::path> outputs);

}  // namespace nearwise::cli
