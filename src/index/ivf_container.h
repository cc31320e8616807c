// Which containers (docs/format.md) are inverted files: for those that load them and those that put them
// together.
#pragma once

#include <string_view>

#include "io/container/container_reader.h"

namespace nearwise::index {

inline constexpr std::string_view container_kind = "ivf";

// Throws Error(invalid_argument | unsupported).
inline void expect_ivf(const ContainerReader& reader) {
  reader.expect(container_kind,
                {"metadata", "centroids", "codebooks", "additive_words", "list_sizes", "ids", "codes"});
}

}  // namespace nearwise::index
