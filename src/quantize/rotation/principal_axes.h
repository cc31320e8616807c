// Principal axes by descending variance, and the centred rows from which they are computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/memory.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise::quantize {

// Rows minus their mean, in f32. Far from the origin this loses less than correcting sums of products later.
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
  Buffer<double> axes;  // [dim, dim] one per row, orthonormal, descending variance; largest element positive
  std::vector<double> variances;  // [dim]
};

// Working memory on the budget, in bytes.
std::uint64_t principal_axes_bytes(std::size_t dim);
PrincipalAxes principal_axes(const Context& context, const MatrixView<const float>& centred);

}  // namespace nearwise::quantize
