#include "io/container/names_container.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "core/check.h"
#include "io/container/container_writer.h"

namespace nearwise {
namespace {

constexpr std::size_t checked_names = 4096;  // between two checks for cancellation

// As Python decodes it: the shortest form of every character, no surrogates, nothing beyond U+10FFFF.
bool is_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  for (std::size_t i = 0; i < text.size();) {
    const std::uint8_t lead = byte(i);
    if (lead < 0x80) {
      ++i;
      continue;
    }
    std::size_t length = 0;
    if (lead >= 0xC2 && lead <= 0xDF) length = 2;
    if (lead >= 0xE0 && lead <= 0xEF) length = 3;
    if (lead >= 0xF0 && lead <= 0xF4) length = 4;
    if (length == 0 || text.size() - i < length) return false;
    // The second byte decides whether a shorter form exists, and whether the character does.
    const std::uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const std::uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (byte(i + 1) < low || byte(i + 1) > high) return false;
    for (std::size_t more = 2; more < length; ++more)
      if (byte(i + more) < 0x80 || byte(i + more) > 0xBF) return false;
    i += length;
  }
  return true;
}

// The rules for names, the same when saving and when loading. `code` says whose fault it is.
void check_values(std::span<const std::uint64_t> offsets, std::string_view text, const std::string& source,
                  ErrorCode code) {
  if (offsets.empty() || offsets.front() != 0 || offsets.back() != text.size() ||
      !std::ranges::is_sorted(offsets))
    fail(code, "{}: offsets from 0 to the {} bytes of the text, ascending, expected", source, text.size());
  const std::size_t count = offsets.size() - 1;
  const auto name_of = [&](std::size_t i) { return text.substr(offsets[i], offsets[i + 1] - offsets[i]); };
  for (std::size_t i = 0; i < count; ++i) {
    if (i % checked_names == 0) check_cancelled();
    if (!is_utf8(name_of(i))) fail(code, "{}: text, name {}: UTF-8 expected", source, i);
  }
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, name_of);
  const auto twice = std::ranges::adjacent_find(order, {}, name_of);
  if (twice != order.end())
    fail(code, "{}: text: different names expected, {} and {} are the same", source, *twice, *(twice + 1));
}

std::string_view text_of(MatrixView<const std::uint8_t> text) {
  return {reinterpret_cast<const char*>(text.data()), text.rows()};
}

}  // namespace

NamesContent check_names(const ContainerReader& reader) {
  const LostPagesScope lost_pages;
  reader.expect(names_kind, {"metadata", "offsets", "text"});
  reader.verify();
  static_cast<void>(reader.metadata());
  const NamesContent content = {reader.section("offsets").rows<std::uint64_t>(),
                                reader.section("text").rows<std::uint8_t>()};
  if (content.offsets.cols() != 1 || content.text.cols() != 1)
    fail(ErrorCode::corrupt, "{}: offsets and text of one column expected", reader.source());
  check_values({content.offsets.data(), content.offsets.rows()}, text_of(content.text), reader.source(),
               ErrorCode::corrupt);
  check_lost_pages();
  return content;
}

void save(const SavedNames& names, const std::filesystem::path& path) {
  check_values(names.offsets, names.text, "save " + path.native(), ErrorCode::invalid_argument);
  ContainerWriter writer(path, std::string(names_kind));
  writer.set_minor_version(1);
  writer.write_metadata(nlohmann::json::object());
  writer.write_section("offsets",
                       MatrixView<const std::uint64_t>(names.offsets.data(), names.offsets.size(), 1));
  writer.begin_section("text", container::ElementOf<std::uint8_t>::value);
  writer.append(std::as_bytes(std::span(names.text)));
  writer.commit();
}

SavedNames load_names(const std::filesystem::path& path) {
  const LostPagesScope lost_pages;
  const ContainerReader reader = ContainerReader::open(path);
  const NamesContent content = check_names(reader);
  SavedNames names = {.offsets = {content.offsets.data(), content.offsets.data() + content.offsets.rows()},
                      .text = std::string(text_of(content.text))};
  check_lost_pages();
  return names;
}

}  // namespace nearwise
