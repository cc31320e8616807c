// Defaults of an inverted file that depend on the number of vectors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "nearwise/ivf.h"

namespace nearwise::ivf {

// k-means needs this many vectors per centroid for centroids that generalise.
inline constexpr std::size_t min_rows_per_list = 39;
inline constexpr std::size_t training_rows_per_list = 256;

inline std::size_t default_lists(std::size_t rows) {
  const auto lists = static_cast<std::size_t>(std::lround(4 * std::sqrt(static_cast<double>(rows))));
  return std::max<std::size_t>(1, std::min(lists, rows / min_rows_per_list));
}

// Before calibration: sqrt(lists) / 2.
inline std::size_t default_probes(std::size_t lists) {
  const auto probes = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(lists)) / 2));
  return std::min(lists, std::max<std::size_t>(2, probes));
}

// Checks the options against the vectors and fills in every default; training_rows is at most the number of
// vectors. Throws Error(invalid_argument).
IvfOptions resolve(const char* operation, const IvfOptions& options, const RowsView& rows);

}  // namespace nearwise::ivf
