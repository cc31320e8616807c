// What training, adding and building need of a memory limit: checked before work begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "ivf/ivf_state.h"
#include "nearwise/context.h"
#include "nearwise/ivf.h"
#include "nearwise/matrix.h"

namespace nearwise::ivf {

// The options are resolved. Bytes on the budget, with the result of the training.
std::uint64_t training_bytes(const Context& context, const RowsView& rows, const IvfOptions& options);

// An index of `lists` lists whose codes take `code_bytes` each.
struct IndexShape {
  std::size_t lists = 0;
  std::size_t dim = 0;
  std::size_t code_bytes = 0;
  std::uint64_t encode_bytes = 0;  // Codec::encode_bytes()
  bool is_flat = false;
};
// Adding `rows` to it in one call, in addition to the index.
std::uint64_t adding_bytes(const Context& context, const RowsView& rows, const IndexShape& shape);

// Of the table of ids, if it is made, and for `more` ids below next_id: in addition to the one there is.
std::uint64_t table_bytes(const IvfInternals::State& state, std::size_t more, Id next_id);

// Ivf::build: training, then filling the lists, then calibration.
std::uint64_t building_bytes(const Context& context, const RowsView& rows, const IvfOptions& options,
                             const std::optional<CalibrationOptions>& calibration);

}  // namespace nearwise::ivf
