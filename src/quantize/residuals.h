// Residuals: vectors minus the centroid of their list.
#pragma once

#include <cstddef>
#include <span>

#include "backend/context_state.h"
#include "core/memory.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/types.h"
#include "quantize/training_rows.h"

namespace nearwise::quantize {

// out[r] = row r - centroid nearest[r], in f32; for cosine the row is normalised first.
void subtract_centroids(const Context& context, const RowsView& rows, MatrixView<const float> centroids,
                        std::span<const Id> nearest, Metric metric, MatrixView<float> out);

// Residuals of a random sample of the rows: what the codec of an inverted file is trained on.
class ResidualSample {
 public:
  ResidualSample(const Context& context, const RowsView& rows, std::size_t max_rows,
                 MatrixView<const float> centroids, Metric metric);
  const Matrix<float>& rows() const { return rows_; }

 private:
  const TrainingRows sample_;
  const Reservation bytes_;
  Matrix<float> rows_;
};

}  // namespace nearwise::quantize
