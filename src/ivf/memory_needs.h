// What training, adding and building need of a memory limit: checked before work begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "nearwise/context.h"
#include "nearwise/ivf.h"
#include "nearwise/matrix.h"

namespace nearwise::ivf {

// The options are resolved. Bytes on the budget, with the result of the training.
std::uint64_t training_bytes(const Context& context, const RowsView& rows, const IvfOptions& options);

// An index of `lists` lists whose vectors take `code_bytes` each, and `vector_bytes` if they are kept.
struct IndexShape {
  std::size_t lists = 0;
  std::size_t dim = 0;
  std::size_t code_bytes = 0;
  std::size_t vector_bytes = 0;
  bool is_flat = false;
};
// Adding `rows` to it in one call, with the space they take in the lists.
std::uint64_t adding_bytes(const Context& context, const RowsView& rows, const IndexShape& shape);

// Ivf::build: training, then filling the lists, then calibration.
std::uint64_t building_bytes(const Context& context, const RowsView& rows, const IvfOptions& options,
                             const std::optional<CalibrationOptions>& calibration);

}  // namespace nearwise::ivf
