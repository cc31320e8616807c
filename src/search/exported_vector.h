// Vectors of a graph index for other libraries: f32, of length 1 for cosine.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "core/convert.h"
#include "search/graph_index_state.h"

namespace nearwise::search {

// out: [dim]
inline void export_vector(const GraphIndexInternals::State& state, std::size_t row,
                          std::vector<double>& scratch, std::span<float> out) {
  scratch.resize(state.codec.dim);
  row_to_double(state.vectors, row, scratch.data());
  double squares = 0;
  for (const double element : scratch) squares += element * element;
  const double length = state.codec.metric == Metric::cosine && squares > 0 ? std::sqrt(squares) : 1;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(scratch[i] / length);
}

}  // namespace nearwise::search
