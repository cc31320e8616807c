// Quantizers of any kind, in .nw files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>

#include "cli/shared/files.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/quantize/additive_quantizer.h"
#include "nearwise/quantize/optimized_product_quantizer.h"
#include "nearwise/quantize/product_quantizer.h"

namespace nearwise::cli {

class Quantizer {
 public:
  using Any = std::variant<ProductQuantizer, OptimizedProductQuantizer, AdditiveQuantizer>;
  explicit Quantizer(Any quantizer) : quantizer_(std::move(quantizer)) {}
  // A .nw file of another kind, or another suffix, is Error(invalid_argument).
  static Quantizer open(const std::filesystem::path& path);
  void save(const std::filesystem::path& path, const Provenance& provenance) const;

  std::string kind() const;  // pq, opq or lsq
  std::size_t dim() const;
  std::size_t code_bytes() const;
  // additive: only for lsq, which searches for its codes.
  Matrix<std::uint8_t> encode(const Context& context, RowsView rows,
                              const AdditiveEncodeOptions& additive) const;
  Matrix<float> decode(const Context& context, MatrixView<const std::uint8_t> codes) const;

 private:
  Any quantizer_;
};

}  // namespace nearwise::cli
