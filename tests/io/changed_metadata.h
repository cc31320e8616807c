// Containers with other metadata and right checksums, as an attacker would make them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "io/container/container_reader.h"
#include "io/container/container_writer.h"
#include "io/expect_error.h"

namespace nearwise::testing_io {

inline nlohmann::json metadata_of(const std::filesystem::path& path) {
  return ContainerReader::open(path).metadata();
}

// A copy with this metadata; `to` may be the file itself.
inline void copy_with_metadata(const std::filesystem::path& from, const std::filesystem::path& to,
                               const nlohmann::json& metadata) {
  const ContainerReader reader = ContainerReader::open(from);
  ContainerWriter writer(to, reader.header().kind);
  writer.set_minor_version(reader.header().version_minor);
  for (const container::Section& section : reader.sections()) {
    if (section.name == "metadata") {
      writer.write_metadata(metadata);
      continue;
    }
    writer.begin_section(
        section.name, section.element,
        {.columns = section.columns, .presence = section.required ? Presence::required : Presence::optional});
    writer.append(reader.section(section.name).bytes());
  }
  writer.commit();
}

// load(path) takes the number at this place of the metadata (a JSON pointer: "/calibration/rows") up to
// `largest`, and refuses one more, and the largest of 64 bits, as damage. The file stays as it is.
template <typename Load>
void expect_bound(const std::filesystem::path& path, const std::string& place, std::uint64_t largest,
                  const Load& load) {
  SCOPED_TRACE(place);
  const std::filesystem::path changed = path.parent_path() / "changed.nw";
  const nlohmann::json::json_pointer number(place);
  nlohmann::json metadata = metadata_of(path);
  ASSERT_TRUE(metadata.at(number).is_number_unsigned());
  metadata[number] = largest;
  copy_with_metadata(path, changed, metadata);
  EXPECT_NO_THROW(load(changed)) << largest;
  for (const std::uint64_t more : {largest + 1, UINT64_MAX}) {
    metadata[number] = more;
    copy_with_metadata(path, changed, metadata);
    EXPECT_ERROR(load(changed), corrupt, std::to_string(largest));
  }
}

}  // namespace nearwise::testing_io
