#include "cli/shared/quantizer_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <type_traits>

#include "cli/shared/files.h"
#include "nearwise/storage.h"

namespace nearwise::cli {
namespace {

// The part of a codec that makes codes.
const AdditiveQuantizer& coder_of(const AdditiveQuantizer& codec) { return codec; }
const ProductQuantizer& coder_of(const ProductQuantizer& codec) { return codec; }
const ProductQuantizer& coder_of(const OptimizedProductQuantizer& codec) { return codec.quantizer; }

constexpr std::array<std::string_view, 3> codec_names = {"lsq", "opq", "pq"};  // in the order of Codec

}  // namespace

void Quantizer::require_suffix(const std::filesystem::path& path) {
  if (!is_container(path))
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}': suffix '{}' cannot hold a quantizer; .nw can",
                                                         path.string(), path.extension().string()));
}

Quantizer Quantizer::open(const std::filesystem::path& path) {
  require_suffix(path);
  const ContainerInfo info = inspect(path);
  if (info.kind == "additive_quantizer") return Quantizer(load_additive_quantizer(path));
  if (info.kind != "product_quantizer")
    throw Error(ErrorCode::invalid_argument,
                fmt::format("'{}': a quantizer expected, the file holds {}", path.string(), info.kind));
  const bool is_rotated = std::ranges::count(info.sections, "rotation", &SectionInfo::name) != 0;
  if (is_rotated) return Quantizer(load_optimized_product_quantizer(path));
  return Quantizer(load_product_quantizer(path));
}

void Quantizer::save(const std::filesystem::path& path, const Provenance& provenance) const {
  std::visit([&](const auto& codec) { nearwise::save(codec, path, provenance); }, codec_);
}

std::string Quantizer::codec() const { return std::string(codec_names[codec_.index()]); }

std::size_t Quantizer::dim() const {
  return std::visit([](const auto& codec) { return coder_of(codec).dim(); }, codec_);
}

std::size_t Quantizer::code_bytes() const {
  return std::visit([](const auto& codec) { return coder_of(codec).code_bytes(); }, codec_);
}

Matrix<std::uint8_t> Quantizer::encode(const Context& context, RowsView rows,
                                       const AdditiveEncodeOptions& additive) const {
  return std::visit(
      [&]<typename T>(const T& codec) {
        if constexpr (std::is_same_v<T, AdditiveQuantizer>)
          return codec.encode(context, rows, additive);
        else
          return codec.encode(context, rows);
      },
      codec_);
}

Matrix<float> Quantizer::decode(const Context& context, MatrixView<const std::uint8_t> codes) const {
  return std::visit([&](const auto& codec) { return codec.decode(context, codes); }, codec_);
}

}  // namespace nearwise::cli
