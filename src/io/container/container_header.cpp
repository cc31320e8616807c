#include "io/container/container_header.h"

#include <xxhash.h>

#include <algorithm>
#include <unordered_set>

#include "core/checked.h"
#include "io/files/little_endian.h"

namespace nearwise::container {
namespace {

// Where the fields of docs/format.md lie.
namespace header_field {
constexpr std::size_t version_major = 8;
constexpr std::size_t version_minor = 10;
constexpr std::size_t needs = 12;
constexpr std::size_t reserved_16 = 18;
constexpr std::size_t section_count = 20;
constexpr std::size_t kind = 24;
constexpr std::size_t file_bytes = 56;
constexpr std::size_t table_offset = 64;
constexpr std::size_t table_bytes = 72;
constexpr std::size_t table_checksum = 80;
constexpr std::size_t reserved = 88;
}  // namespace header_field

namespace entry_field {
constexpr std::size_t name = 0;
constexpr std::size_t offset = 32;
constexpr std::size_t rows = 40;
constexpr std::size_t columns = 48;
constexpr std::size_t element = 56;
constexpr std::size_t element_bytes = 58;
constexpr std::size_t flags = 60;
}  // namespace entry_field

template <typename... Args>
[[noreturn]] void corrupt(const std::string& source, fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorCode::corrupt, "{}: {}", source, fmt::format(format, std::forward<Args>(args)...));
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte value) { return value == std::byte{0}; });
}

void store_name(std::byte* to, std::string_view name) {
  NEARWISE_ASSERT(well_formed_name(name));
  std::memcpy(to, name.data(), name.size());
}

std::string load_name(const std::byte* from, const std::string& source, std::string_view what) {
  const char* text = reinterpret_cast<const char*>(from);
  const std::string_view field(text, name_bytes);
  const std::string_view name = field.substr(0, field.find('\0'));
  const bool padded = field.find_first_not_of('\0', name.size()) == std::string_view::npos;
  if (!well_formed_name(name) || !padded)
    corrupt(source, "{}: expected a name of 1 to 31 characters a-z 0-9 _, found other bytes", what);
  return std::string(name);
}

void check_magic(std::span<const std::byte> bytes, const std::string& source) {
  if (std::memcmp(bytes.data(), magic.data(), magic.size()) == 0) return;
  // The letters survive what a transfer in text mode does to the bytes around them.
  const bool letters = std::memcmp(bytes.data() + 1, magic.data() + 1, 3) == 0;
  if (letters)
    corrupt(source,
            "its first 8 bytes are changed, as by a transfer in text mode; copy the file in binary mode");
  corrupt(source, "this is no nearwise file (its first 8 bytes are not the magic number)");
}

void check_version(const Header& header, const std::string& source) {
  if (header.version_major == version_major) return;
  fail(ErrorCode::unsupported, "{}: format version {}.{} needs {}; this build reads versions {}.x", source,
       header.version_major, header.version_minor, needed_release(header), version_major);
}

void check_element(const Section& section, std::uint32_t flags, const Header& header,
                   const std::string& source) {
  const auto code = static_cast<std::uint16_t>(section.element);
  const bool newer = header.version_minor > version_minor;
  if ((flags & ~flag_required) != 0 || (code >= element_count && section.required)) {
    if (newer)
      fail(ErrorCode::unsupported, "{}: section '{}' is of a kind that this build does not know; needs {}",
           source, section.name, needed_release(header));
    corrupt(source, "section '{}': unknown element {} or flags {:#x}", section.name, code, flags);
  }
  if (code >= element_count && !newer)
    corrupt(source, "section '{}': unknown element {}", section.name, code);
  const bool size_right = code < element_count
                              ? section.element_bytes == element_bytes(section.element)
                              : section.element_bytes >= 1 && section.element_bytes <= most_element_bytes;
  if (!size_right)
    corrupt(source, "section '{}': an element {} of {} bytes", section.name, code, section.element_bytes);
}

}  // namespace

std::uint16_t element_bytes(Element element) {
  constexpr std::array<std::uint16_t, element_count> sizes = {1, 1, 1, 1, 2, 4, 8, 4, 8, 2, 2, 4, 8};
  return sizes.at(static_cast<std::size_t>(element));
}

std::string_view name(Element element) {
  constexpr std::array<std::string_view, element_count> names = {
      "bytes", "json", "u8", "i8", "u16", "u32", "u64", "i32", "i64", "f16", "bf16", "f32", "f64"};
  const auto code = static_cast<std::size_t>(element);
  return code < names.size() ? names[code] : "unknown";
}

bool well_formed_name(std::string_view name) {
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return !name.empty() && name.size() < name_bytes && letter(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_'; });
}

std::uint64_t checksum(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::array<std::byte, header_bytes> encode(const Header& header) {
  std::array<std::byte, header_bytes> bytes{};
  std::memcpy(bytes.data(), magic.data(), magic.size());
  store(bytes.data() + header_field::version_major, header.version_major);
  store(bytes.data() + header_field::version_minor, header.version_minor);
  store(bytes.data() + header_field::needs, header.needs.major);
  store(bytes.data() + header_field::needs + 2, header.needs.minor);
  store(bytes.data() + header_field::needs + 4, header.needs.patch);
  store(bytes.data() + header_field::section_count, header.section_count);
  store_name(bytes.data() + header_field::kind, header.kind);
  store(bytes.data() + header_field::file_bytes, header.file_bytes);
  store(bytes.data() + header_field::table_offset, header.table_offset);
  store(bytes.data() + header_field::table_bytes, header.table_bytes);
  store(bytes.data() + header_field::table_checksum, header.table_checksum);
  store(bytes.data() + header_checksum_offset, checksum({bytes.data(), header_checksum_offset}));
  return bytes;
}

std::array<std::byte, entry_bytes> encode(const Section& section) {
  std::array<std::byte, entry_bytes> bytes{};
  store_name(bytes.data() + entry_field::name, section.name);
  store(bytes.data() + entry_field::offset, section.offset);
  store(bytes.data() + entry_field::rows, section.rows);
  store(bytes.data() + entry_field::columns, section.columns);
  store(bytes.data() + entry_field::element, section.element);
  store(bytes.data() + entry_field::element_bytes, section.element_bytes);
  store(bytes.data() + entry_field::flags, section.required ? flag_required : 0U);
  return bytes;
}

Header decode_header(std::span<const std::byte> bytes, const std::string& source) {
  if (bytes.size() < alignment)
    corrupt(source, "expected a nearwise file of at least {} bytes, found {}", alignment, bytes.size());
  check_magic(bytes, source);

  const std::byte* data = bytes.data();
  const std::uint64_t stored = load<std::uint64_t>(data + header_checksum_offset);
  const std::uint64_t found = checksum(bytes.first(header_checksum_offset));
  if (stored != found) corrupt(source, "header: checksum {:016x} expected, {:016x} found", stored, found);

  Header header;
  header.version_major = load<std::uint16_t>(data + header_field::version_major);
  header.version_minor = load<std::uint16_t>(data + header_field::version_minor);
  header.needs = {load<std::uint16_t>(data + header_field::needs),
                  load<std::uint16_t>(data + header_field::needs + 2),
                  load<std::uint16_t>(data + header_field::needs + 4)};
  check_version(header, source);

  const bool reserved_zero = all_zero(bytes.subspan(header_field::reserved_16, 2)) &&
                             all_zero(bytes.subspan(header_field::reserved, 32));
  if (!reserved_zero && header.version_minor <= version_minor)
    corrupt(source, "header: reserved bytes are not zero");
  if (!all_zero(bytes.subspan(header_bytes, alignment - header_bytes)))
    corrupt(source, "bytes {} to {} behind the header: zero expected, other values found", header_bytes,
            alignment - 1);

  header.kind = load_name(data + header_field::kind, source, "kind");
  header.section_count = load<std::uint32_t>(data + header_field::section_count);
  header.file_bytes = load<std::uint64_t>(data + header_field::file_bytes);
  header.table_offset = load<std::uint64_t>(data + header_field::table_offset);
  header.table_bytes = load<std::uint64_t>(data + header_field::table_bytes);
  header.table_checksum = load<std::uint64_t>(data + header_field::table_checksum);

  if (header.file_bytes != bytes.size())
    corrupt(source, "{} bytes expected by its header, {} found: the file was {}", header.file_bytes,
            bytes.size(), bytes.size() < header.file_bytes ? "cut off" : "extended");
  const bool table_inside = header.table_offset % alignment == 0 && header.table_offset >= alignment &&
                            header.table_offset <= header.file_bytes &&
                            header.table_bytes == header.file_bytes - header.table_offset;
  if (!table_inside)
    corrupt(source, "header: a section table of {} bytes at {} in a file of {}", header.table_bytes,
            header.table_offset, header.file_bytes);
  if (header.section_count > most_sections || header.section_count > header.table_bytes / entry_bytes)
    corrupt(source, "header: {} sections in a table of {} bytes", header.section_count, header.table_bytes);
  return header;
}

std::vector<Section> decode_table(std::span<const std::byte> bytes, const Header& header,
                                  const std::string& source) {
  const std::span table = bytes.subspan(header.table_offset, header.table_bytes);
  const std::uint64_t found = checksum(table);
  if (found != header.table_checksum)
    corrupt(source, "section table at offset {}: checksum {:016x} expected, {:016x} found",
            header.table_offset, header.table_checksum, found);

  std::vector<Section> sections(header.section_count);
  std::unordered_set<std::string_view> names;
  std::uint64_t next_offset = alignment;
  std::uint64_t blocks = 0;
  for (std::size_t i = 0; i < sections.size(); ++i) {
    const std::byte* entry = table.data() + i * entry_bytes;
    Section& section = sections[i];
    section.name = load_name(entry + entry_field::name, source, "name of a section");
    if (!names.insert(section.name).second) corrupt(source, "two sections have the name '{}'", section.name);
    section.offset = load<std::uint64_t>(entry + entry_field::offset);
    section.rows = load<std::uint64_t>(entry + entry_field::rows);
    section.columns = load<std::uint64_t>(entry + entry_field::columns);
    section.element = load<Element>(entry + entry_field::element);
    section.element_bytes = load<std::uint16_t>(entry + entry_field::element_bytes);
    const auto flags = load<std::uint32_t>(entry + entry_field::flags);
    section.required = (flags & flag_required) != 0;
    check_element(section, flags, header, source);

    if (section.columns == 0 || section.columns > most_columns)
      corrupt(source, "section '{}': 1 to {} columns expected, {} found", section.name, most_columns,
              section.columns);
    const std::uint64_t row_bytes = section.columns * section.element_bytes;  // below 2^38
    if (section.offset != next_offset || section.offset > header.table_offset)
      corrupt(source, "section '{}': offset {} expected, {} found", section.name, next_offset,
              section.offset);
    const std::uint64_t room = header.table_offset - section.offset;
    if (section.rows > room / row_bytes)
      corrupt(source, "section '{}': {} rows of {} bytes at {} do not fit before the table at {}",
              section.name, section.rows, row_bytes, section.offset, header.table_offset);
    section.bytes = section.rows * row_bytes;
    section.blocks = divide_up(section.bytes, block_bytes);
    section.first_block = blocks;
    blocks += section.blocks;
    // At most the table's offset, which is a multiple of the alignment: no overflow.
    section.padded_end = round_up(section.offset + section.bytes, alignment);
    next_offset = section.padded_end;
  }
  if (next_offset != header.table_offset)
    corrupt(source, "section table: offset {} expected, {} found", next_offset, header.table_offset);
  const std::uint64_t table_bytes = sections.size() * entry_bytes + blocks * sizeof(std::uint64_t);
  if (table_bytes != header.table_bytes)
    corrupt(source, "section table: {} bytes expected, {} found", table_bytes, header.table_bytes);
  return sections;
}

std::string needed_release(const Header& header) {
  return fmt::format("nearwise >= {}.{}.{}", header.needs.major, header.needs.minor, header.needs.patch);
}

}  // namespace nearwise::container
