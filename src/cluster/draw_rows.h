// Stratified sampling: one random row from each of equal parts. Evenly spaced rows would miss classes of
// periodic data.
#pragma once

#include <cstddef>

#include "core/math/random.h"

namespace nearwise::cluster {

// Rows [begin_of_part(i), begin_of_part(i + 1)) are part i of `parts` nearly equal ones.
inline std::size_t begin_of_part(std::size_t rows, std::size_t parts, std::size_t part) {
  return rows / parts * part + rows % parts * part / parts;
}

inline std::size_t draw_from_part(const Random& random, std::size_t rows, std::size_t parts,
                                  std::size_t part) {
  const std::size_t begin = begin_of_part(rows, parts, part);
  return begin + random.below(part, begin_of_part(rows, parts, part + 1) - begin);
}

}  // namespace nearwise::cluster
