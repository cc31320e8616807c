// Changes to containers that reach the code behind their checksums: in the text of the metadata, in the
// entries of the section table, and in the numbers of sections.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "../io/reseal.h"
#include "io/container/container_reader.h"
#include "nearwise/error.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace nearwise::fuzz {

// A number of the metadata becomes another one, often one at the edge of a type.
inline void change_number(std::string& text, std::minstd_rand& random) {
  static constexpr std::array edges = {"0",
                                       "1",
                                       "-1",
                                       "2",
                                       "255",
                                       "4294967295",
                                       "4294967296",
                                       "9223372036854775807",
                                       "18446744073709551615",
                                       "18446744073709551616",
                                       "1e308",
                                       "0.5",
                                       "null",
                                       "\"\"",
                                       "[]",
                                       "65536"};
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (std::isdigit(static_cast<unsigned char>(text[i])) != 0 &&
        (i == 0 || std::isdigit(static_cast<unsigned char>(text[i - 1])) == 0))
      begins.push_back(i);
  if (begins.empty()) return;
  const std::size_t begin = begins[random() % begins.size()];
  std::size_t end = begin;
  while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
  text.replace(begin, end - begin, edges[random() % edges.size()]);
}

// The text may grow into the zeros behind it, up to the next section.
inline void change_metadata(std::span<std::byte> bytes, const container::Section& section,
                            const container::Header& header, std::size_t number, std::minstd_rand& random) {
  const std::size_t room = section.padded_end - section.offset;
  std::string text(reinterpret_cast<const char*>(bytes.data()) + section.offset, section.bytes);
  if (random() % 2 == 0) {
    change_number(text, random);
  } else {
    text.resize(room);
    text.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(text.data()), section.bytes, room));
  }
  text.resize(std::min(text.size(), room));
  std::fill_n(bytes.data() + section.offset, room, std::byte{0});
  std::memcpy(bytes.data() + section.offset, text.data(), text.size());
  store(bytes.data() + header.table_offset + number * container::entry_bytes + 40,
        static_cast<std::uint64_t>(text.size()));
}

inline void change_numbers(std::span<std::byte> bytes, const container::Section& section,
                           std::minstd_rand& random) {
  if (section.bytes == 0) return;
  const std::size_t element = section.element_bytes;
  const std::size_t begin = random() % (section.bytes / element) * element;
  auto* const data = reinterpret_cast<std::uint8_t*>(bytes.data() + section.offset + begin);
  static constexpr std::array<std::uint64_t, 8> edges = {
      0,          1,          ~std::uint64_t{0}, std::uint64_t{1} << 31, std::uint64_t{1} << 32,
      0x7FC00000, 0x7F800000, 0xFF7FFFFF};
  if (random() % 2 == 0)
    std::memcpy(data, &edges[random() % edges.size()], std::min<std::size_t>(element, 8));
  else
    LLVMFuzzerMutate(data, element, element);
}

// Some changes, and right checksums. What is no container is changed as any bytes are.
inline std::size_t mutate_container(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                    unsigned seed) {
  std::minstd_rand random(seed);
  const std::span<std::byte> bytes(reinterpret_cast<std::byte*>(data), size);
  container::Header header;
  std::vector<container::Section> sections;
  try {
    header = container::decode_header(bytes, "input");
    sections = container::decode_table(bytes, header, "input");
  } catch (const Error&) {
  }
  if (sections.empty() || random() % 16 == 0) {
    size = LLVMFuzzerMutate(data, size, max_size);
    testing_io::reseal({reinterpret_cast<std::byte*>(data), size});
    return size;
  }
  for (std::size_t changes = 1 + random() % 3; changes > 0; --changes) {
    const std::size_t number = random() % sections.size();
    const container::Section& section = sections[number];
    if (random() % 4 == 0) {
      auto* const entry = reinterpret_cast<std::uint8_t*>(bytes.data() + header.table_offset +
                                                          number * container::entry_bytes);
      LLVMFuzzerMutate(entry + 32, 32, 32);  // all but the name
    } else if (section.element == container::Element::json) {
      change_metadata(bytes, section, header, number, random);
    } else {
      change_numbers(bytes, section, random);
    }
  }
  testing_io::reseal(bytes);
  return size;
}

}  // namespace nearwise::fuzz
