// Files of names: what is saved comes back, and what no names are is refused.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/container/container_writer.h"
#include "io/reseal.h"
#include "io/temporary_folder.h"
#include "nearwise/error.h"
#include "nearwise/storage.h"
#include "support/error_of.h"

namespace nearwise {
namespace {

using support::error_of;

SavedNames names_of(const std::vector<std::string>& texts) {
  SavedNames names;
  for (const std::string& text : texts) {
    names.text += text;
    names.offsets.push_back(names.text.size());
  }
  return names;
}

TEST(Names, ComeBack) {
  const testing_io::TemporaryFolder folder;
  // One to four bytes per character, the last before and the first after what UTF-8 leaves out, and NUL.
  const std::vector<std::string> every = {
      "",   "a", std::string("\0", 1), "caf\xC3\xA9", "\xED\x9F\xBF", "\xEE\x80\x80", "\xF4\x8F\xBF\xBF",
      "a b"};
  for (const std::vector<std::string>& texts :
       {std::vector<std::string>(), std::vector<std::string>{""}, every}) {
    const SavedNames names = names_of(texts);
    save(names, folder / "names.nw");
    const SavedNames loaded = load_names(folder / "names.nw");
    EXPECT_EQ(loaded.offsets, names.offsets);
    EXPECT_EQ(loaded.text, names.text);
    const ContainerInfo info = verify(folder / "names.nw");
    EXPECT_EQ(info.kind, "names");
    EXPECT_EQ(info.version_minor, 1);
  }
}

// Saved by nobody, but with right checksums.
void write(const std::filesystem::path& path, const SavedNames& names, std::size_t columns = 1) {
  ContainerWriter writer(path, "names");
  writer.set_minor_version(1);
  writer.write_metadata({{"later", "key"}});
  writer.begin_section("offsets", container::ElementOf<std::uint64_t>::value, {.columns = columns});
  writer.append(std::as_bytes(std::span(names.offsets)));
  writer.begin_section("text", container::ElementOf<std::uint8_t>::value);
  writer.append(std::as_bytes(std::span(names.text)));
  writer.commit();
}

TEST(Names, WhatNoNamesAreIsRefused) {
  const testing_io::TemporaryFolder folder;
  const auto refuses = [&](const SavedNames& names, const std::string& words) {
    const Error saving = error_of([&] { save(names, folder / "saved.nw"); });
    EXPECT_EQ(saving.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(saving.what()).find(words), std::string::npos) << saving.what();
    EXPECT_FALSE(std::filesystem::exists(folder / "saved.nw"));
    write(folder / "written.nw", names);
    for (const Error& loading : {error_of([&] { load_names(folder / "written.nw"); }),
                                 error_of([&] { verify(folder / "written.nw"); })}) {
      EXPECT_EQ(loading.code(), ErrorCode::corrupt);
      EXPECT_NE(std::string(loading.what()).find(words), std::string::npos) << loading.what();
    }
  };
  const std::string offsets = "offsets from 0 to the 3 bytes of the text";
  refuses({.offsets = {0, 2}, .text = "abc"}, offsets);
  refuses({.offsets = {1, 3}, .text = "abc"}, offsets);
  refuses({.offsets = {0, 4}, .text = "abc"}, offsets);
  refuses({.offsets = {0, 2, 1, 3}, .text = "abc"}, offsets);
  refuses({.offsets = {0, ~std::uint64_t{0}, 3}, .text = "abc"}, offsets);
  refuses({.offsets = {}, .text = "abc"}, offsets);
  refuses(names_of({"a", "b", "a"}), "text: different names expected, 0 and 2 are the same");
  refuses(names_of({"", "b", ""}), "0 and 2 are the same");
  // Not UTF-8: a lone second byte, no second byte, longer than needed, a surrogate, beyond U+10FFFF, 0xFF.
  for (const char* const text :
       {"\x80", "\xC3", "\xC3x", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xE2\x82", "\xED\xA0\x80",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xE2\x82\x28"})
    refuses(names_of({"good", text}), "text, name 1: UTF-8 expected");
  // A character over the border of two names is no character.
  refuses({.offsets = {0, 1, 2}, .text = "\xC3\xA9"}, "name 0: UTF-8 expected");
  write(folder / "wide.nw", {.offsets = {0, 3}, .text = "abc"}, 2);
  EXPECT_EQ(error_of([&] { load_names(folder / "wide.nw"); }).code(), ErrorCode::corrupt);
  write(folder / "right.nw", names_of({"a", "b"}));
  EXPECT_EQ(load_names(folder / "right.nw").text, "ab");
}

TEST(Names, OtherFilesAreRefused) {
  const testing_io::TemporaryFolder folder;
  ContainerWriter(folder / "other.nw", "other").commit();
  EXPECT_EQ(error_of([&] { load_names(folder / "other.nw"); }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([&] { load_names(folder / "missing.nw"); }).code(), ErrorCode::not_found);
}

}  // namespace
}  // namespace nearwise
