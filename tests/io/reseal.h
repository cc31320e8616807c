// Makes every checksum of a container right again after its bytes were changed, as an attacker would.
//
// Follows the offsets in the file as far as they lie inside it, whatever they are. For tests and fuzz
// targets: with right checksums only the structural checks of a reader stand between the file and its user.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "io/container/container_header.h"
#include "io/files/little_endian.h"

namespace nearwise::testing_io {

inline void reseal(std::span<std::byte> bytes) {
  using namespace nearwise::container;
  if (bytes.size() < header_bytes) return;
  const auto field = [&](std::size_t offset) { return load<std::uint64_t>(bytes.data() + offset); };
  constexpr std::size_t table_offset_field = 64, table_bytes_field = 72, table_checksum_field = 80;
  const std::uint64_t table_offset = std::min<std::uint64_t>(field(table_offset_field), bytes.size());
  const std::uint64_t table_bytes =
      std::min<std::uint64_t>(field(table_bytes_field), bytes.size() - table_offset);
  const std::span table = bytes.subspan(table_offset, table_bytes);

  const std::uint64_t count =
      std::min<std::uint64_t>(load<std::uint32_t>(bytes.data() + 20), table_bytes / entry_bytes);
  std::uint64_t checksum_at = count * entry_bytes;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::byte* entry = table.data() + i * entry_bytes;
    const std::uint64_t offset = std::min<std::uint64_t>(load<std::uint64_t>(entry + 32), bytes.size());
    const auto rows = load<std::uint64_t>(entry + 40);
    const std::uint64_t row_bytes = load<std::uint64_t>(entry + 48) * load<std::uint16_t>(entry + 58);
    std::uint64_t size = 0;
    if (__builtin_mul_overflow(rows, row_bytes, &size)) size = 0;
    size = std::min<std::uint64_t>(size, bytes.size() - offset);
    for (std::uint64_t first = 0; first < size && checksum_at + 8 <= table_bytes; first += block_bytes) {
      const std::uint64_t block = std::min(block_bytes, size - first);
      store(table.data() + checksum_at, checksum(bytes.subspan(offset + first, block)));
      checksum_at += 8;
    }
  }
  store(bytes.data() + table_checksum_field, checksum(table));
  store(bytes.data() + header_checksum_offset, checksum(bytes.first(header_checksum_offset)));
}

}  // namespace nearwise::testing_io
