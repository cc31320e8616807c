// Optimized product quantization (OPQ): vectors are rotated before product quantization, so that parts are
// less correlated and have similar variance.
//
// Rotation and codewords are trained in turn: the next rotation brings the vectors closest to their
// reconstructions. Ge, He, Ke, Sun: Optimized product quantization (2014).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "nearwise/context.h"
#include "nearwise/export.h"
#include "nearwise/matrix.h"
#include "nearwise/product_quantizer.h"
#include "nearwise/rotation.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

struct OptimizedProductQuantizerOptions {
  ProductQuantizerOptions quantizer = {};
  std::size_t rounds = 10;  // of rotation and codeword updates, at most; 0: the better initial rotation
};

// A square rotation without mean, which preserves inner products, and a quantizer of rotated vectors.
struct OptimizedProductQuantizer {
  Rotation rotation;
  ProductQuantizer quantizer;

  // Starts from the better of two rotations: identity, and principal axes allocated to parts so that the
  // products of their variances are similar. Returns the round with the smallest error on the training
  // vectors, which is never above that of ProductQuantizer::train with the same options. Throws like it.
  static OptimizedProductQuantizer train(const Context& context, RowsView rows,
                                         const OptimizedProductQuantizerOptions& options = {});

  // Codes of the rotated vectors.
  Matrix<std::uint8_t> encode(const Context& context, RowsView rows) const;
  // Reconstructions, rotated back.
  Matrix<float> decode(const Context& context, MatrixView<const std::uint8_t> codes) const;
  // ProductQuantizer::tables of the rotated queries.
  Matrix<float> tables(const Context& context, RowsView queries, Metric metric = Metric::sqeuclidean) const;
  // Mean squared distance of the rotated vectors to their reconstructions.
  double error(const Context& context, RowsView rows) const;
};

// As for ProductQuantizer, with the rotation. A file without a rotation is Error(invalid_argument).
void save(const OptimizedProductQuantizer& quantizer, const std::filesystem::path& path,
          const std::map<std::string, std::string>& provenance = {});
OptimizedProductQuantizer load_optimized_product_quantizer(const std::filesystem::path& path);

}  // namespace nearwise
