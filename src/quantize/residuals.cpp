#include "quantize/residuals.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/context_state.h"
#include "core/checked.h"
#include "core/convert.h"
#include "nearwise/kmeans.h"

namespace nearwise::quantize {

void subtract_centroids(const Context& context, const RowsView& rows, MatrixView<const float> centroids,
                        std::span<const Id> nearest, Metric metric, MatrixView<float> out) {
  constexpr std::size_t task_rows = 1024;
  context.state().threads->for_each(divide_up(rows.rows(), task_rows), [&](std::size_t task) {
    context.state().cancel.check();
    std::vector<double> row(rows.dim());
    for (std::size_t r = task * task_rows; r < std::min(rows.rows(), (task + 1) * task_rows); ++r) {
      row_to_double(rows, r, row.data());
      if (metric == Metric::cosine) {
        double squares = 0;
        for (const double value : row) squares += value * value;
        const double length = std::sqrt(squares);
        for (double& value : row) value = length > 0 ? value / length : 0;
      }
      const std::span<const float> centroid = centroids.row(static_cast<std::size_t>(nearest[r]));
      const std::span<float> residual = out.row(r);
      for (std::size_t i = 0; i < row.size(); ++i) residual[i] = static_cast<float>(row[i] - centroid[i]);
    }
  });
}

ResidualSample::ResidualSample(const Context& context, const RowsView& rows, std::size_t max_rows,
                               MatrixView<const float> centroids, Metric metric)
    : sample_(context, rows, max_rows),
      bytes_(*context.state().budget, sample_.view().rows() * rows.dim() * sizeof(float)),
      rows_(sample_.view().rows(), rows.dim()) {
  const Neighbors nearest = assign(context, sample_.view(), centroids, {.metric = metric});
  subtract_centroids(context, sample_.view(), centroids, {nearest.ids.data(), rows_.rows()}, metric,
                     rows_.view());
}

}  // namespace nearwise::quantize
