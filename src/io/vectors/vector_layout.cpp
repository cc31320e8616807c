#include "io/vectors/vector_layout.h"

#include <algorithm>
#include <array>

#include "core/checked.h"
#include "io/files/little_endian.h"
#include "io/files/magic.h"
#include "io/vectors/npy_header.h"

namespace nearwise {
namespace {

static_assert(most_head_bytes >= most_npy_header_bytes);

constexpr std::array suffixes = {
    Suffix{".npy", VectorFormat::npy, std::nullopt},
    Suffix{".fbin", VectorFormat::bin, StoredType::f32},
    Suffix{".f16bin", VectorFormat::bin, StoredType::f16},
    Suffix{".bf16bin", VectorFormat::bin, StoredType::bf16},
    Suffix{".u8bin", VectorFormat::bin, StoredType::u8},
    Suffix{".i8bin", VectorFormat::bin, StoredType::i8},
    Suffix{".ibin", VectorFormat::bin, StoredType::i32},
    Suffix{".fvecs", VectorFormat::vecs, StoredType::f32},
    Suffix{".bvecs", VectorFormat::vecs, StoredType::u8},
    Suffix{".ivecs", VectorFormat::vecs, StoredType::i32},
    Suffix{".bin", VectorFormat::ground_truth, std::nullopt},
    Suffix{".nw", VectorFormat::container, std::nullopt},
};

// More is no vector. Also keeps an empty file, whose length bounds nothing, from naming an absurd dim.
constexpr std::uint64_t most_dim = 0x7FFFFFFF;

// Of ASCII letters, whatever the locale: some systems make BASE.FBIN of base.fbin.
std::string lower_case(std::string text) {
  for (char& letter : text)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return text;
}

// The only element types whose files mean the same on every machine.
StoredType parse_descr(const std::string& descr, const std::string& source) {
  struct Known {
    std::string_view descr;
    StoredType type;
  };
  // NumPy has no bfloat16; libraries that do save it as two opaque bytes.
  constexpr std::array known = {
      Known{"<f4", StoredType::f32},  Known{"<f2", StoredType::f16},      Known{"|u1", StoredType::u8},
      Known{"<u1", StoredType::u8},   Known{"|i1", StoredType::i8},       Known{"<i1", StoredType::i8},
      Known{"<i4", StoredType::i32},  Known{"<i8", StoredType::i64},      Known{"<V2", StoredType::bf16},
      Known{"|V2", StoredType::bf16}, Known{"bfloat16", StoredType::bf16}};
  for (const Known& candidate : known)
    if (descr == candidate.descr) return candidate.type;
  constexpr std::string_view accepted = "<f4 <f2 |u1 |i1 <i4 <i8, or <V2 for bfloat16";
  if (descr.find('O') != std::string::npos)
    fail(ErrorCode::invalid_argument,
         "{}: an array of numbers expected ({}), found Python objects ('{}'), which are not loaded", source,
         accepted, descr);
  if (descr.starts_with('>'))
    fail(ErrorCode::invalid_argument, "{}: little-endian elements expected ({}), found big-endian ('{}')",
         source, accepted, descr);
  const bool is_double = descr == "<f8";
  fail(ErrorCode::invalid_argument, "{}: elements {} expected, found '{}'{}", source, accepted, descr,
       is_double ? " (float64: save array.astype(numpy.float32) of it, or of ids array.astype(numpy.int64))"
                 : "");
}

// Fills in the stride and compares what rows and dim say with the length of the file.
void check_length(VectorLayout& layout, std::uint64_t file_bytes, const std::string& source) {
  if (layout.rows != 0 && layout.dim == 0)
    fail(ErrorCode::invalid_argument, "{}: {} rows of at least one element expected, found dimension 0",
         source, layout.rows);
  if (layout.dim > most_dim)
    fail(ErrorCode::corrupt, "{}: a dimension of at most {} expected, found {}", source, most_dim,
         layout.dim);
  layout.stride_bytes = layout.dim * stored_size(layout.type);
  const std::uint64_t content =
      checked_multiply<std::uint64_t>(layout.rows, layout.stride_bytes, source.c_str(), ErrorCode::corrupt);
  const std::uint64_t expected = checked_add(content, layout.data_offset, source.c_str(), ErrorCode::corrupt);
  if (expected != file_bytes)
    fail(ErrorCode::corrupt, "{}: {} rows of {} {} need a file of {} bytes, found {}", source, layout.rows,
         layout.dim, name(layout.type), expected, file_bytes);
}

VectorLayout npy_layout(std::span<const std::byte> head, std::uint64_t file_bytes,
                        const std::string& source) {
  const NpyHeader header = parse_npy_header(head, source);
  VectorLayout layout{.format = VectorFormat::npy};
  layout.type = parse_descr(header.descr, source);
  if (header.shape.size() != 2)
    fail(ErrorCode::invalid_argument, "{}: an array of 2 dimensions expected, found {}{}", source,
         header.shape.size(), header.shape.size() == 1 ? " (for one vector save array[None, :])" : "");
  // An array of one row or one column lies the same in both orders, but NumPy calls it C order then.
  if (header.fortran_order)
    fail(ErrorCode::invalid_argument,
         "{}: C order expected, found Fortran order (save numpy.ascontiguousarray of it)", source);
  layout.rows = header.shape[0];
  layout.dim = header.shape[1];
  layout.data_offset = header.data_offset;
  check_length(layout, file_bytes, source);
  return layout;
}

VectorLayout bin_layout(StoredType type, std::span<const std::byte> head, std::uint64_t file_bytes,
                        const std::string& source) {
  if (head.size() < 8)
    fail(ErrorCode::corrupt, "{}: a header of 8 bytes expected, found {}", source, head.size());
  VectorLayout layout{.format = VectorFormat::bin, .type = type};
  layout.rows = load<std::uint32_t>(head.data());
  layout.dim = load<std::uint32_t>(head.data() + 4);
  layout.data_offset = 8;
  check_length(layout, file_bytes, source);
  return layout;
}

VectorLayout vecs_layout(StoredType type, std::span<const std::byte> head, std::uint64_t file_bytes,
                         const std::string& source) {
  VectorLayout layout{.format = VectorFormat::vecs, .type = type};
  layout.data_offset = row_prefix_bytes(VectorFormat::vecs);
  if (file_bytes == 0) return layout;  // no rows, and no place to say of which dimension
  if (head.size() < 4)
    fail(ErrorCode::corrupt, "{}: at least 4 bytes expected, found {}", source, head.size());
  const auto dim = load<std::int32_t>(head.data());
  if (dim <= 0) fail(ErrorCode::corrupt, "{}: a dimension of at least 1 expected, found {}", source, dim);
  layout.dim = static_cast<std::size_t>(dim);
  layout.stride_bytes = 4 + layout.dim * stored_size(type);
  if (file_bytes % layout.stride_bytes != 0)
    fail(ErrorCode::corrupt, "{}: a multiple of {} bytes (4 + {} {}) expected, found {}", source,
         layout.stride_bytes, layout.dim, name(type), file_bytes);
  layout.rows = file_bytes / layout.stride_bytes;
  return layout;
}

}  // namespace

std::size_t stored_size(StoredType type) {
  switch (type) {
    case StoredType::i64: return 8;
    case StoredType::f32:
    case StoredType::i32: return 4;
    case StoredType::f16:
    case StoredType::bf16: return 2;
    case StoredType::u8:
    case StoredType::i8: return 1;
  }
  fail(ErrorCode::internal, "stored_size: unknown type {}", static_cast<int>(type));
}

std::string_view name(StoredType type) {
  if (type == StoredType::i32) return "i32";
  if (type == StoredType::i64) return "i64";
  return name(element_type(type));
}

bool is_id(StoredType type) { return type == StoredType::i32 || type == StoredType::i64; }

StoredType stored_type(ElementType type) {
  switch (type) {
    case ElementType::f32: return StoredType::f32;
    case ElementType::f16: return StoredType::f16;
    case ElementType::bf16: return StoredType::bf16;
    case ElementType::u8: return StoredType::u8;
    case ElementType::i8: return StoredType::i8;
  }
  fail(ErrorCode::internal, "stored_type: unknown type {}", static_cast<int>(type));
}

ElementType element_type(StoredType type) {
  switch (type) {
    case StoredType::f32: return ElementType::f32;
    case StoredType::f16: return ElementType::f16;
    case StoredType::bf16: return ElementType::bf16;
    case StoredType::u8: return ElementType::u8;
    case StoredType::i8: return ElementType::i8;
    case StoredType::i32:
    case StoredType::i64: break;
  }
  fail(ErrorCode::internal, "element_type: {} is not a vector type", static_cast<int>(type));
}

const Suffix& suffix_of(const std::filesystem::path& path, std::string_view operation) {
  const std::string given = path.extension().native();
  const std::string wanted = lower_case(given);
  std::string known;
  for (const Suffix& suffix : suffixes) {
    if (suffix.text == wanted) return suffix;
    known += " ";
    known += suffix.text;
  }
  fail(ErrorCode::invalid_argument, "{} {}: one of the suffixes{} expected, found '{}'", operation,
       path.native(), known, given);
}

const Suffix& format_of(const std::filesystem::path& path, std::span<const std::byte> head,
                        std::string_view operation) {
  const bool is_npy = begins_with(head, npy_magic);
  if (!is_npy && !begins_with(head, container_magic)) return suffix_of(path, operation);
  return *std::ranges::find(suffixes, is_npy ? VectorFormat::npy : VectorFormat::container, &Suffix::format);
}

std::string_view npy_descr(StoredType type) {
  switch (type) {
    case StoredType::f32: return "<f4";
    case StoredType::f16: return "<f2";
    case StoredType::bf16: return "<V2";
    case StoredType::u8: return "|u1";
    case StoredType::i8: return "|i1";
    case StoredType::i32: return "<i4";
    case StoredType::i64: return "<i8";
  }
  fail(ErrorCode::internal, "npy_descr: unknown type {}", static_cast<int>(type));
}

VectorLayout layout_of(const Suffix& suffix, std::span<const std::byte> head, std::uint64_t file_bytes,
                       const std::string& source) {
  switch (suffix.format) {
    case VectorFormat::npy: return npy_layout(head, file_bytes, source);
    case VectorFormat::bin: return bin_layout(suffix.type.value(), head, file_bytes, source);
    case VectorFormat::vecs: return vecs_layout(suffix.type.value(), head, file_bytes, source);
    case VectorFormat::ground_truth:
    case VectorFormat::container: break;
  }
  fail(ErrorCode::invalid_argument, "{}: a file of vectors expected, {} holds neighbours", source,
       suffix.text);
}

void check_row_prefixes(const VectorLayout& layout, const std::byte* first_row, std::size_t number,
                        std::size_t count, const std::string& source) {
  for (std::size_t row = 0; row < count; ++row) {
    const auto dim = load<std::int32_t>(first_row + row * layout.stride_bytes);
    if (dim != static_cast<std::int32_t>(layout.dim))
      fail(ErrorCode::corrupt, "{}: row {}: dimension {} expected as in row 0, found {}", source,
           number + row, layout.dim, dim);
  }
}

VectorLayout check_vectors(const Suffix& suffix, std::span<const std::byte> bytes,
                           const std::string& source) {
  const VectorLayout layout =
      layout_of(suffix, bytes.first(std::min(bytes.size(), most_head_bytes)), bytes.size(), source);
  if (layout.format != VectorFormat::vecs) return layout;
  if (layout.rows <= rows_checked_in_full) {
    check_row_prefixes(layout, bytes.data(), 0, layout.rows, source);
  } else {
    // Reading every page of a huge file to open it would take minutes.
    for (std::size_t i = 0; i <= rows_sampled; ++i) {
      const std::size_t row = (layout.rows - 1) / rows_sampled * i;
      check_row_prefixes(layout, bytes.data() + row * layout.stride_bytes, row, 1, source);
    }
    const std::size_t last = layout.rows - 1;
    check_row_prefixes(layout, bytes.data() + last * layout.stride_bytes, last, 1, source);
  }
  return layout;
}

RowsView vectors_in(const VectorLayout& layout, std::span<const std::byte> bytes, const std::string& source) {
  require_vectors(layout, source);
  // No rows: no address past the end either.
  const std::byte* data = layout.rows == 0 ? bytes.data() : bytes.data() + layout.data_offset;
  return {data, element_type(layout.type), layout.rows, layout.dim, layout.stride_bytes};
}

void require_vectors(const VectorLayout& layout, const std::string& source) {
  require(!is_id(layout.type),
          "{}: vectors expected (f32, f16, bf16, u8 or i8), found {} numbers, which are ids", source,
          name(layout.type));
}

}  // namespace nearwise
