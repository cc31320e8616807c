// Axes of falling variance, and the rows around their mean from which they are computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/memory.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise::quantize {

// Rows less their mean, in f32. Subtracting first loses less than correcting sums of products later, far from
// the origin.
class CentredRows {
 public:
  CentredRows(const Context& context, const RowsView& rows);
  static std::uint64_t bytes(const RowsView& rows);

  MatrixView<const float> view() const { return {values_.data(), rows_, mean_.size()}; }
  const std::vector<float>& mean() const { return mean_; }

 private:
  std::size_t rows_;
  std::vector<float> mean_;
  Buffer<float> values_;
};

struct PrincipalAxes {
  Buffer<double> axes;  // [dim, dim] one per row, orthonormal, by falling variance; largest element positive
  std::vector<double> variances;  // [dim]
};

// Bytes on the budget while they are computed.
std::uint64_t principal_axes_bytes(std::size_t dim);
PrincipalAxes principal_axes(const Context& context, const MatrixView<const float>& centred);

}  // namespace nearwise::quantize
