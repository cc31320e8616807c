// Codec of Pq: product codes of residuals.
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "quantize/codec.h"
#include "quantize/product/coding.h"

namespace nearwise::quantize {
namespace {

class ProductCodec final : public Codec {
 public:
  explicit ProductCodec(ProductQuantizer quantizer) : quantizer_(std::move(quantizer)) {
    for (std::size_t part = 0; part <= quantizer_.parts(); ++part)
      part_begins_.push_back(quantizer_.part_begin(part));
  }

  std::string_view name() const override { return "pq"; }
  ListCodec view() const override {
    return {.encoding = ListEncoding::pq,
            .dim = quantizer_.dim(),
            .type = ElementType::f32,
            .code_bytes = quantizer_.code_bytes(),
            .part_begins = part_begins_,
            .codewords = quantizer_.codebooks(),
            .bits = quantizer_.bits()};
  }
  void encode(const Context& context, const Matrix<float>& residuals,
              const MatrixView<std::uint8_t>& codes) const override {
    const Matrix<std::uint8_t> encoded = quantizer_.encode(context, residuals);
    std::memcpy(codes.data(), encoded.data(), codes.rows() * codes.cols());
  }
  std::uint64_t encode_bytes(const Context& context) const override {
    return quantize::encode_bytes(
        "add", context, {quantizer_.dim(), quantizer_.parts(), quantizer_.bits(), quantizer_.codebooks()});
  }
  double encode_cost(std::size_t rows) const override {
    return product_encode_cost(rows, quantizer_.parts(), quantizer_.bits(), quantizer_.dim());
  }
  MatrixView<const float> codewords() const override {
    return {quantizer_.codebooks().data(), quantizer_.codebooks().size(), 1};
  }
  nlohmann::json settings() const override {
    return {{"encoding", name()}, {"parts", quantizer_.parts()}, {"bits", quantizer_.bits()}};
  }
  const ProductQuantizer* product_quantizer() const override { return &quantizer_; }

 private:
  ProductQuantizer quantizer_;
  std::vector<std::size_t> part_begins_;
};

}  // namespace

std::shared_ptr<const Codec> make_product_codec(ProductQuantizer quantizer) {
  return std::make_shared<ProductCodec>(std::move(quantizer));
}

}  // namespace nearwise::quantize
