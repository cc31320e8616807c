// Quantizers as commands take and leave them: one of three codecs, in a .nw file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>

#include "cli/shared/result_file.h"
#include "nearwise/additive_quantizer.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/optimized_product_quantizer.h"
#include "nearwise/product_quantizer.h"

namespace nearwise::cli {

class Quantizer {
 public:
  using Codec = std::variant<AdditiveQuantizer, OptimizedProductQuantizer, ProductQuantizer>;
  explicit Quantizer(Codec codec) : codec_(std::move(codec)) {}
  // A .nw file of another kind, or of another suffix, is Error(invalid_argument).
  static Quantizer open(const std::filesystem::path& path);
  static void require_suffix(const std::filesystem::path& path);
  void save(const std::filesystem::path& path, const Provenance& provenance) const;

  std::string codec() const;  // lsq, opq or pq
  bool is_additive() const { return std::holds_alternative<AdditiveQuantizer>(codec_); }
  std::size_t dim() const;
  std::size_t code_bytes() const;
  // additive: of codecs that search for codes; others have no such options.
  Matrix<std::uint8_t> encode(const Context& context, RowsView rows,
                              const AdditiveEncodeOptions& additive) const;
  Matrix<float> decode(const Context& context, MatrixView<const std::uint8_t> codes) const;

 private:
  Codec codec_;
};

}  // namespace nearwise::cli
