// Choice of how an inverted file is searched under a filter. Answers depend on it, so it depends on the
// search alone: not on the CPU or device, the memory limit or measured times.
#pragma once

#include <cstddef>

#include "nearwise/ivf.h"

namespace nearwise::ivf {

struct FilteredShape {
  std::size_t queries = 0;
  std::size_t allowed = 0;     // vectors
  std::size_t lists = 0;       // that hold them
  std::size_t scanned = 0;     // allowed vectors wanted for each query
  std::size_t candidates = 0;  // to re-rank; 0: none
  std::size_t dim = 0;
  std::size_t vector_bytes = 0;   // of a vector as it is compared; 0: none are kept
  bool is_flat = false;           // lists hold the vectors themselves
  bool has_fixed_probes = false;  // the caller's number: lists are probed
};

IvfSearchPlan plan_filtered(const FilteredShape& shape);

}  // namespace nearwise::ivf
