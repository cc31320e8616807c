#include "io/vectors/npz_writer.h"

#include <array>

#include "core/check.h"
#include "core/checked.h"
#include "io/files/little_endian.h"
#include "io/vectors/npy_header.h"

namespace nearwise {
namespace {

constexpr std::uint16_t version_with_64_bits = 45;
constexpr std::uint16_t first_of_january_1980 = 0x21;  // the earliest day that a zip knows
constexpr std::uint16_t sizes_of_64_bits = 1;          // the extra field that holds them
constexpr std::uint16_t see_16 = 0xFFFF;               // "look at the 64-bit number"
constexpr std::uint32_t see_32 = 0xFFFFFFFF;

template <typename... Numbers>
std::string packed(Numbers... numbers) {
  std::string bytes((sizeof(Numbers) + ...), '\0');
  auto* to = reinterpret_cast<std::byte*>(bytes.data());
  ((store(to, numbers), to += sizeof(Numbers)), ...);
  return bytes;
}

std::string local_header(const std::string& name, std::uint64_t bytes, std::uint32_t checksum) {
  return packed(std::uint32_t{0x04034B50}, version_with_64_bits, std::uint16_t{0}, std::uint16_t{0},
                std::uint16_t{0}, first_of_january_1980, checksum, see_32, see_32,
                static_cast<std::uint16_t>(name.size()), std::uint16_t{20}) +
         name + packed(sizes_of_64_bits, std::uint16_t{16}, bytes, bytes);
}

std::string directory_entry(const std::string& name, std::uint64_t offset, std::uint64_t bytes,
                            std::uint32_t checksum) {
  return packed(std::uint32_t{0x02014B50}, version_with_64_bits, version_with_64_bits, std::uint16_t{0},
                std::uint16_t{0}, std::uint16_t{0}, first_of_january_1980, checksum, see_32, see_32,
                static_cast<std::uint16_t>(name.size()), std::uint16_t{28}, std::uint16_t{0},
                std::uint16_t{0}, std::uint16_t{0}, std::uint32_t{0}, see_32) +
         name + packed(sizes_of_64_bits, std::uint16_t{24}, bytes, bytes, offset);
}

// What a zip ends in: the 64-bit end of its directory, where that lies, and the old form that points to both.
std::string end_of_directory(std::uint64_t entries, std::uint64_t offset, std::uint64_t bytes) {
  return packed(std::uint32_t{0x06064B50}, std::uint64_t{44}, version_with_64_bits, version_with_64_bits,
                std::uint32_t{0}, std::uint32_t{0}, entries, entries, bytes, offset) +
         packed(std::uint32_t{0x07064B50}, std::uint32_t{0}, offset + bytes, std::uint32_t{1}) +
         packed(std::uint32_t{0x06054B50}, std::uint16_t{0}, std::uint16_t{0}, see_16, see_16, see_32, see_32,
                std::uint16_t{0});
}

// [n][b]: the checksum of byte b and n zeros behind it, so that eight bytes are looked up at once.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;
constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1U) ^ ((value & 1U) != 0 ? 0xEDB88320U : 0U);
    tables[0][byte] = value;
  }
  for (std::size_t zeros = 1; zeros < 8; ++zeros)
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[zeros - 1][byte];
      tables[zeros][byte] = (before >> 8U) ^ tables[0][before & 0xFFU];
    }
  return tables;
}
constexpr Tables tables = make_tables();

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

std::uint32_t zip_checksum(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint32_t value = ~before;
  while (bytes.size() >= 8) {
    const std::uint64_t next = load<std::uint64_t>(bytes.data()) ^ value;
    value = 0;
    for (std::size_t i = 0; i < 8; ++i) value ^= tables[7 - i][(next >> (8 * i)) & 0xFFU];
    bytes = bytes.subspan(8);
  }
  for (const std::byte byte : bytes)
    value = (value >> 8U) ^ tables[0][(value ^ static_cast<std::uint32_t>(byte)) & 0xFFU];
  return ~value;
}

void NpzWriter::begin_array(std::string_view name, std::string_view descr,
                            const std::vector<std::uint64_t>& shape) {
  end_array();
  const std::string header = make_npy_header(descr, shape);
  std::uint64_t size = 1;
  for (const std::uint64_t count : shape) size = checked_multiply<std::uint64_t>(size, count, "write");
  expected_bytes_ = size * std::stoul(std::string(descr.substr(2))) + header.size();
  entries_.push_back({.name = std::string(name) + ".npy", .offset = file_.size(), .bytes = 0, .checksum = 0});
  file_.write(bytes_of(local_header(entries_.back().name, 0, 0)));
  append(bytes_of(header));
}

void NpzWriter::append(std::span<const std::byte> elements) {
  NEARWISE_ASSERT(!entries_.empty());
  Entry& entry = entries_.back();
  entry.checksum = zip_checksum(elements, entry.checksum);
  entry.bytes += elements.size();
  file_.write(elements);
}

void NpzWriter::end_array() {
  if (entries_.empty()) return;
  const Entry& entry = entries_.back();
  NEARWISE_ASSERT(entry.bytes == expected_bytes_);
  file_.overwrite(entry.offset, bytes_of(local_header(entry.name, entry.bytes, entry.checksum)));
}

void NpzWriter::commit() {
  end_array();
  const std::uint64_t offset = file_.size();
  for (const Entry& entry : entries_)
    file_.write(bytes_of(directory_entry(entry.name, entry.offset, entry.bytes, entry.checksum)));
  file_.write(bytes_of(end_of_directory(entries_.size(), offset, file_.size() - offset)));
  file_.commit();
}

}  // namespace nearwise
