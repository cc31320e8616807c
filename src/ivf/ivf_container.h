// The container kind of inverted files (docs/format.md), for loading and for merging files.
#pragma once

#include <string_view>

#include "io/container/container_reader.h"

namespace nearwise::ivf {

inline constexpr std::string_view container_kind = "ivf";

// Throws Error(invalid_argument | unsupported).
inline void expect_ivf(const ContainerReader& reader) {
  reader.expect(container_kind,
                {"metadata", "centroids", "codewords", "list_sizes", "ids", "codes", "vectors"});
}

}  // namespace nearwise::ivf
