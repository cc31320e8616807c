// Where the rows of a file of vectors or ids lie: suffixes, headers, shapes.
//
// Pure functions over bytes, shared by the mapped file, the chunked reader, the readers of ids and the fuzz
// targets. Nothing is believed before it is compared with the file's length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace nearwise {

enum class VectorFormat : std::uint8_t {
  npy,           // NumPy
  bin,           // u32 rows, u32 dim, then the rows
  vecs,          // every row preceded by its i32 dim
  ground_truth,  // u32 rows, u32 k, i32 ids, f32 distances
  container,     // docs/format.md
};

// What a file can hold: the element types of vectors, and two widths of ids.
enum class StoredType : std::uint8_t { f32, f16, bf16, u8, i8, i32, i64 };

std::size_t stored_size(StoredType type);
std::string_view name(StoredType type);
bool is_id(StoredType type);
StoredType stored_type(ElementType type);
// For a type that is no id.
ElementType element_type(StoredType type);

struct Suffix {
  std::string_view text;  // ".fbin"
  VectorFormat format;
  std::optional<StoredType> type;  // none: the file says it
};

// Matched in upper or lower case. Throws Error(invalid_argument) with the known suffixes.
const Suffix& suffix_of(const std::filesystem::path& path, std::string_view operation);

// The format that the first bytes of a file say (.npy and .nw have magic numbers), or else the suffix.
const Suffix& format_of(const std::filesystem::path& path, std::span<const std::byte> head,
                        std::string_view operation);

// The descr of a .npy file.
std::string_view npy_descr(StoredType type);

struct VectorLayout {
  VectorFormat format = VectorFormat::bin;
  StoredType type = StoredType::f32;
  std::size_t rows = 0;
  std::size_t dim = 0;
  std::uint64_t data_offset = 0;  // of the first element of row 0
  std::size_t stride_bytes = 0;   // from row to row
};

// Bytes in front of each row's elements.
inline std::size_t row_prefix_bytes(VectorFormat format) { return format == VectorFormat::vecs ? 4 : 0; }

// The first bytes of a file that layout_of() may want to see.
inline constexpr std::size_t most_head_bytes = std::size_t{64} << 10;

// For .npy, .*bin and .*vecs. `head`: the first most_head_bytes, or all of a shorter file.
// Throws Error(corrupt), or Error(invalid_argument) for a sound file of something else.
VectorLayout layout_of(const Suffix& suffix, std::span<const std::byte> head, std::uint64_t file_bytes,
                       const std::string& source);

// Rows of a .*vecs file whose every dim is compared with the first; larger files are sampled.
inline constexpr std::size_t rows_checked_in_full = 1'000'000;
inline constexpr std::size_t rows_sampled = 1024;

// Compares the dim in front of rows [0, count); `first_row` points to the first of them, prefix included, and
// is row number `number` of the file. Throws Error(corrupt).
void check_row_prefixes(const VectorLayout& layout, const std::byte* first_row, std::size_t number,
                        std::size_t count, const std::string& source);

// All of a mapped file: layout, then for .*vecs the row prefixes (every row, or first, last and a fixed
// sample).
VectorLayout check_vectors(const Suffix& suffix, std::span<const std::byte> bytes, const std::string& source);

// The rows as vectors. Error(invalid_argument) if they are ids.
RowsView vectors_in(const VectorLayout& layout, std::span<const std::byte> bytes, const std::string& source);

// Error(invalid_argument) for a file that holds ids.
void require_vectors(const VectorLayout& layout, const std::string& source);

}  // namespace nearwise
