// Optimized product quantization: rows are rotated first, so that the parts of a product quantizer get equal shares of what
// there is to tell, and correlations between parts are gone.
//
// Rotation and codewords are trained in turn: the rows that codes stand for are compared with the rows, and the rotation that
// brings them closest is taken. Ge, He, Ke, Sun: Optimized product quantization (2014).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/product_quantizer.h"
#include "nearwise/rotation.h"
#include "nearwise/types.h"

namespace nearwise {

struct OptimizedProductQuantizerOptions {
  ProductQuantizerOptions quantizer = {};
  std::size_t rounds = 10;  // of a new rotation and its codewords, at most. 0: the better of the starts
};

// A complete rotation (as many axes as elements, and no mean: products with rows stay the same too) and a quantizer of
// rotated rows.
struct OptimizedProductQuantizer {
  Rotation rotation;
  ProductQuantizer quantizer;

  // Starts without a rotation, and from principal axes dealt to the parts so that the products of their variances are alike;
  // goes on from the better one; returns the best of all that was measured on the rows it trained on. On these the error
  // is never above that of ProductQuantizer::train with the same options. Throws what that throws.
  static OptimizedProductQuantizer train(const Context& context, RowsView rows,
                                         const OptimizedProductQuantizerOptions& options = {});

  // Codes of the rotated rows.
  Matrix<std::uint8_t> encode(const Context& context, RowsView rows) const;
  // The rows that codes stand for, rotated back.
  Matrix<float> decode(const Context& context, MatrixView<const std::uint8_t> codes) const;
  // ProductQuantizer::tables of the rotated queries.
  Matrix<float> tables(const Context& context, RowsView queries, Metric metric = Metric::sqeuclidean) const;
  // The mean over all rows of the squared distance of the rotated row from what its code stands for.
  double error(const Context& context, RowsView rows) const;
};

// As those of a ProductQuantizer, with the rotation. A file without one is Error(invalid_argument).
void save(const OptimizedProductQuantizer& quantizer, const std::filesystem::path& path,
          const std::map<std::string, std::string>& provenance = {});
OptimizedProductQuantizer load_optimized_product_quantizer(const std::filesystem::path& path);

}  // namespace nearwise
