// Optimized product quantization (OPQ): vectors are rotated before product quantization, so that variance is
// spread evenly over the parts and correlations between parts are removed.
//
// Training alternates between codewords and rotation: the new rotation is the one that best aligns the
// vectors with their reconstructions. Ge, He, Ke, Sun: Optimized product quantization (2014).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "nearwise/context.h"
#include "nearwise/export.h"
#include "nearwise/matrix.h"
#include "nearwise/quantize/product_quantizer.h"
#include "nearwise/quantize/rotation.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

struct OptimizedProductQuantizerOptions {
  ProductQuantizerOptions quantizer = {};
  // At most this many rounds of training, each with a new rotation and its codewords; 0: only the better
  // initial rotation.
  std::size_t rounds = 10;
};

// A square rotation without a mean, which preserves inner products too, and a quantizer of the rotated
// vectors.
struct OptimizedProductQuantizer {
  Rotation rotation;
  ProductQuantizer quantizer;

  // Starts from the better of the identity and the principal axes, allocated to parts so that the products of
  // their variances are balanced, and returns the round with the lowest error on the training vectors. That
  // error is never above that of ProductQuantizer::train with the same options. Throws what
  // ProductQuantizer::train throws.
  static OptimizedProductQuantizer train(const Context& context, RowsView rows,
                                         const OptimizedProductQuantizerOptions& options = {});

  // Codes of the rotated vectors.
  Matrix<std::uint8_t> encode(const Context& context, RowsView rows) const;
  // The decoded vectors, rotated back.
  Matrix<float> decode(const Context& context, MatrixView<const std::uint8_t> codes) const;
  // ProductQuantizer::tables of the rotated queries.
  Matrix<float> tables(const Context& context, RowsView queries, Metric metric = Metric::sqeuclidean) const;
  // Mean squared reconstruction error of the rotated vectors.
  double error(const Context& context, RowsView rows) const;
};

// As for ProductQuantizer, with the rotation. Throws Error(invalid_argument) for a file without one.
void save(const OptimizedProductQuantizer& quantizer, const std::filesystem::path& path,
          const std::map<std::string, std::string>& provenance = {});
OptimizedProductQuantizer load_optimized_product_quantizer(const std::filesystem::path& path);

}  // namespace nearwise
