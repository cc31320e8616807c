// Residuals: vectors minus the centroids of their lists.
#pragma once

#include <cstdint>
#include <span>

#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace nearwise::index {

// out[r] = row r - centroid nearest[r], in f32; for cosine rows are scaled to length 1 first.
void subtract_centroids(const Context& context, const RowsView& rows, MatrixView<const float> centroids,
                        std::span<const Id> nearest, Metric metric, MatrixView<float> out);

}  // namespace nearwise::index
