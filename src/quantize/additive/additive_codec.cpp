// Codec of Lsq: additive codes of residuals.
#include <nlohmann/json.hpp>
#include <vector>

#include "backend/context_state.h"
#include "nearwise/quantize/additive_quantizer.h"
#include "quantize/additive/additive_coding.h"
#include "quantize/codec.h"

namespace nearwise::quantize {
namespace {

class AdditiveCodec final : public Codec {
 public:
  AdditiveCodec(std::size_t dim, std::span<const float> codewords, std::size_t encode_iterations)
      : dim_(dim), codewords_(codewords.begin(), codewords.end()), encode_iterations_(encode_iterations) {}

  std::string_view name() const override { return "lsq"; }
  ListCodec view() const override {
    return {.encoding = ListEncoding::lsq,
            .dim = dim_,
            .type = ElementType::f32,
            .code_bytes = codebooks(),
            .codewords = codewords_};
  }
  void encode(const Context& context, const Matrix<float>& residuals,
              const MatrixView<std::uint8_t>& codes) const override {
    ProgressMeter progress(context.state().options.progress, context.state().clock, "add", residuals.rows());
    encode_additive_rows("add", context, residuals.view(), {dim_, codebooks(), codewords_},
                         {.iterations = encode_iterations_}, codes, &progress);
  }
  std::uint64_t encode_bytes(const Context& context) const override {
    return additive_encode_bytes("add", context, {dim_, codebooks(), codewords_});
  }
  double encode_cost(std::size_t rows) const override {
    return additive_encode_cost(rows, dim_, codebooks(), encode_iterations_);
  }
  MatrixView<const float> codewords() const override {
    return {codewords_.data(), codewords_.size() / dim_, dim_};
  }
  nlohmann::json settings() const override {
    return {{"encoding", name()}, {"encode_iterations", encode_iterations_}};
  }

 private:
  std::size_t codebooks() const { return codewords_.size() / (AdditiveQuantizer::centroids * dim_); }

  std::size_t dim_;
  std::vector<float> codewords_;  // [codebooks, 256, dim]
  std::size_t encode_iterations_;
};

}  // namespace

std::shared_ptr<const Codec> make_additive_codec(std::size_t dim, std::span<const float> codewords,
                                                 std::size_t encode_iterations) {
  return std::make_shared<AdditiveCodec>(dim, codewords, encode_iterations);
}

}  // namespace nearwise::quantize
