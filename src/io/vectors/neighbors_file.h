// Files of ids over bytes in memory: read_neighbors() without the file. For fuzzing.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "io/vectors/vector_layout.h"
#include "nearwise/neighbors.h"

namespace nearwise {

// Not for containers: they have decode_neighbors().
Neighbors parse_neighbors(const Suffix& suffix, std::span<const std::byte> bytes, const std::string& source);

}  // namespace nearwise
