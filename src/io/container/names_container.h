// Containers of kind "names": their structure, apart from where the bytes lie.
#pragma once

#include <cstdint>
#include <string_view>

#include "io/container/container_reader.h"
#include "nearwise/storage.h"

namespace nearwise {

inline constexpr std::string_view names_kind = "names";

// In place: views into the reader.
struct NamesContent {
  MatrixView<const std::uint64_t> offsets;  // [names + 1, 1]
  MatrixView<const std::uint8_t> text;      // [bytes, 1]
};

// Verifies all checksums and, independently of them, the structure.
NamesContent check_names(const ContainerReader& reader);

}  // namespace nearwise
