// Files of product quantizers, with the rotation of an optimized one (docs/format.md, kind
// "product_quantizer").
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "io/container/container_reader.h"
#include "io/container/container_writer.h"
#include "io/container/metadata.h"
#include "nearwise/quantize/optimized_product_quantizer.h"
#include "nearwise/quantize/product_quantizer.h"

namespace nearwise {
namespace {

constexpr std::string_view kind = "product_quantizer";

void write(const ProductQuantizer& quantizer, const Rotation* rotation, const std::filesystem::path& path,
           const std::map<std::string, std::string>& provenance) {
  ContainerWriter writer(path, std::string(kind));
  writer.write_metadata({{"dim", quantizer.dim()},
                         {"parts", quantizer.parts()},
                         {"bits", quantizer.bits()},
                         {"provenance", provenance}});
  const std::span<const float> books = quantizer.codebooks();
  writer.write_section("codewords", MatrixView<const float>(books.data(), books.size(), 1));
  // A required section: a reader that ignored it would encode other vectors.
  if (rotation != nullptr)
    writer.write_section("rotation", MatrixView<const float>(rotation->matrix().data(),
                                                             rotation->rotated_dim(), rotation->dim()));
  writer.commit();
}

ContainerReader open(const std::filesystem::path& path) {
  ContainerReader reader = ContainerReader::open(path);
  reader.expect(kind, {"metadata", "codewords", "rotation"});
  reader.verify();
  return reader;
}

// Arguments that a quantizer refuses are damage here.
template <typename Make>
auto made(const ContainerReader& reader, const Make& make) {
  try {
    auto object = make();
    check_lost_pages();
    return object;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    fail(ErrorCode::corrupt, "{}: {}", reader.source(), error.what());
  }
}

ProductQuantizer read_quantizer(const ContainerReader& reader) {
  const nlohmann::json metadata = reader.metadata();
  static_cast<void>(read_provenance(metadata, reader.source()));
  const std::size_t dim = read_number(metadata, "dim", reader.source());
  const std::size_t parts = read_number(metadata, "parts", reader.source());
  const std::size_t bits = read_number(metadata, "bits", reader.source());
  if (bits != 4 && bits != 8)
    fail(ErrorCode::corrupt, "{}: metadata: 4 or 8 bits expected, {} found", reader.source(), bits);
  const auto books = reader.section("codewords").rows<float>();
  return made(reader, [&] {
    return ProductQuantizer::from_codebooks(dim, parts, static_cast<unsigned>(bits),
                                            {books.data(), books.rows() * books.cols()});
  });
}

}  // namespace

void save(const ProductQuantizer& quantizer, const std::filesystem::path& path,
          const std::map<std::string, std::string>& provenance) {
  write(quantizer, nullptr, path, provenance);
}

void save(const OptimizedProductQuantizer& quantizer, const std::filesystem::path& path,
          const std::map<std::string, std::string>& provenance) {
  write(quantizer.quantizer, &quantizer.rotation, path, provenance);
}

ProductQuantizer load_product_quantizer(const std::filesystem::path& path) {
  const LostPagesScope lost_pages;
  const ContainerReader reader = open(path);
  require(reader.find("rotation") == nullptr,
          "{}: a plain product quantizer expected, the file holds one of rotated rows", reader.source());
  return read_quantizer(reader);
}

OptimizedProductQuantizer load_optimized_product_quantizer(const std::filesystem::path& path) {
  const LostPagesScope lost_pages;
  const ContainerReader reader = open(path);
  ProductQuantizer quantizer = read_quantizer(reader);
  require(reader.find("rotation") != nullptr,
          "{}: a product quantizer of rotated rows expected, the file holds a plain one", reader.source());
  const auto matrix = reader.section("rotation").rows<float>();
  Rotation rotation = made(reader, [&] {
    require(matrix.rows() == quantizer.dim() && matrix.cols() == quantizer.dim(),
            "rotation: {} x {} numbers expected, {} x {} found", quantizer.dim(), quantizer.dim(),
            matrix.rows(), matrix.cols());
    return Rotation::from_matrix(matrix.cols(), matrix.rows(),
                                 {matrix.data(), matrix.rows() * matrix.cols()});
  });
  return {std::move(rotation), std::move(quantizer)};
}

}  // namespace nearwise
