#include "cli/shared/quantizer_file.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "cli/shared/files.h"

namespace nearwise::cli {
namespace {

// The quantizer behind the rotation, if there is one.
template <typename Kind>
const auto& coder_of(const Kind& quantizer) {
  if constexpr (std::is_same_v<Kind, OptimizedProductQuantizer>)
    return quantizer.quantizer;
  else
    return quantizer;
}

constexpr std::array kind_names = {"pq", "opq", "lsq"};  // in the order of Quantizer::Any

}  // namespace

Quantizer Quantizer::open(const std::filesystem::path& path) {
  const ContainerInfo info = inspect_as(path, "a quantizer", {"additive_quantizer", "product_quantizer"});
  if (info.kind == "additive_quantizer") return Quantizer(load_additive_quantizer(path));
  const bool is_rotated = std::ranges::count(info.sections, "rotation", &SectionInfo::name) != 0;
  if (is_rotated) return Quantizer(load_optimized_product_quantizer(path));
  return Quantizer(load_product_quantizer(path));
}

void Quantizer::save(const std::filesystem::path& path, const Provenance& provenance) const {
  std::visit([&](const auto& quantizer) { nearwise::save(quantizer, path, provenance); }, quantizer_);
}

std::string Quantizer::kind() const { return kind_names[quantizer_.index()]; }

std::size_t Quantizer::dim() const {
  return std::visit([](const auto& quantizer) { return coder_of(quantizer).dim(); }, quantizer_);
}

std::size_t Quantizer::code_bytes() const {
  return std::visit([](const auto& quantizer) { return coder_of(quantizer).code_bytes(); }, quantizer_);
}

Matrix<std::uint8_t> Quantizer::encode(const Context& context, RowsView rows,
                                       const AdditiveEncodeOptions& additive) const {
  return std::visit(
      [&]<typename Kind>(const Kind& quantizer) {
        if constexpr (std::is_same_v<Kind, AdditiveQuantizer>)
          return quantizer.encode(context, rows, additive);
        else
          return quantizer.encode(context, rows);
      },
      quantizer_);
}

Matrix<float> Quantizer::decode(const Context& context, MatrixView<const std::uint8_t> codes) const {
  return std::visit([&](const auto& quantizer) { return quantizer.decode(context, codes); }, quantizer_);
}

}  // namespace nearwise::cli
