// Rotations: vectors in another orthonormal basis, x -> matrix * (x - mean), with the axes as the rows of the
// matrix.
//
// With as many axes as dimensions, distances are preserved; with fewer, the components along the others are
// dropped. Sums are in f64 and in a fixed order: results, and the axes of pca(), have the same bytes for any
// number of threads and on every instruction set.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/export.h"
#include "nearwise/matrix.h"

namespace NEARWISE_EXPORT nearwise {

struct PcaOptions {
  std::optional<std::size_t> training_rows = {};  // drawn by the context's seed; default: 65,536
};

// Immutable: threads may share it.
class Rotation {
 public:
  // The `dims` principal axes of largest variance around the mean, in descending order. The largest element
  // of each axis is positive. Throws Error(invalid_argument) for no vectors, or naming the first one with NaN
  // or infinity.
  static Rotation pca(const Context& context, RowsView rows, std::size_t dims,
                      const PcaOptions& options = {});

  // matrix: [rotated_dim, dim], its rows orthonormal up to 1e-4; mean: [dim], or empty for zero.
  static Rotation from_matrix(std::size_t dim, std::size_t rotated_dim, std::span<const float> matrix,
                              std::span<const float> mean = {});

  // x -> x.
  static Rotation identity(std::size_t dim);

  std::size_t dim() const { return mean_.size(); }
  std::size_t rotated_dim() const { return matrix_.size() / mean_.size(); }
  std::span<const float> matrix() const { return matrix_; }  // [rotated_dim, dim]
  std::span<const float> mean() const { return mean_; }      // [dim]

  // [rows, rotated_dim]. Values beyond f32 become infinite.
  Matrix<float> apply(const Context& context, RowsView rows) const;

  // The inverse, [rows, dim], up to rounding and dropped axes.
  Matrix<float> reverse(const Context& context, RowsView rotated) const;

 private:
  Rotation(std::vector<float> matrix, std::vector<float> mean);

  std::vector<float> matrix_;
  std::vector<float> mean_;
};

}  // namespace nearwise
