// Choice of how exact search leaves out the rows that a filter denies.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nearwise {

enum class FilterStrategy : std::uint8_t {
  direct,  // allowed rows are read where they are, for few queries
  gather,  // allowed rows are copied together and searched
  mask,    // all rows of a packed base are scanned, denied ones without effect
};

struct FilteredSearchShape {
  std::size_t queries = 0;
  std::size_t rows = 0;
  std::size_t allowed = 0;
  std::size_t row_bytes = 0;
  double pair_ns = 0;       // KnnCosts
  bool has_direct = false;  // the backend searches few queries without packing
  bool can_mask = false;    // the base is packed, the scan can leave rows out, and there is memory for it
};

// Copying a row together and packing it, on one thread: an estimate.
inline double gather_ns(std::size_t row_bytes) { return 20 + 0.3 * static_cast<double>(row_bytes); }

FilterStrategy choose_filter_strategy(const FilteredSearchShape& shape);

}  // namespace nearwise
