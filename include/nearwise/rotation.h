// Rotations: x -> matrix * (x - mean), the rows of the matrix being orthonormal axes.
//
// With as many axes as dimensions distances are preserved; with fewer, the other components are dropped. Sums
// are in f64 and in a fixed order: the same bytes at any number of threads and on every machine. So are the
// axes of pca.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/export.h"
#include "nearwise/matrix.h"

namespace NEARWISE_EXPORT nearwise {

struct PcaOptions {
  std::size_t training_rows = 65536;  // at most, drawn with the context's seed; 0: all
};

// Immutable: threads may share it.
class Rotation {
 public:
  // The axes along which the rows vary most, by falling variance, around their mean: 1 to dim of them. The
  // largest element of an axis is positive. Throws Error(invalid_argument) for no rows, and names the first
  // row with NaN or infinity.
  static Rotation pca(const Context& context, RowsView rows, std::size_t dims,
                      const PcaOptions& options = {});

  // matrix: [rotated_dim, dim], its rows orthonormal up to 1e-4; mean: [dim], or empty for zero.
  static Rotation from_matrix(std::size_t dim, std::size_t rotated_dim, std::span<const float> matrix,
                              std::span<const float> mean = {});

  static Rotation identity(std::size_t dim);

  std::size_t dim() const { return mean_.size(); }
  std::size_t rotated_dim() const { return matrix_.size() / mean_.size(); }
  std::span<const float> matrix() const { return matrix_; }  // [rotated_dim, dim]
  std::span<const float> mean() const { return mean_; }      // [dim]

  // [rows, rotated_dim]. Numbers beyond f32 become infinite.
  Matrix<float> apply(const Context& context, RowsView rows) const;

  // [rows, dim]: the inverse, up to rounding and dropped components.
  Matrix<float> reverse(const Context& context, RowsView rotated) const;

 private:
  Rotation(std::vector<float> matrix, std::vector<float> mean);

  std::vector<float> matrix_;
  std::vector<float> mean_;
};

}  // namespace nearwise
