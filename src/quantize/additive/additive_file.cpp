// Files of additive quantizers (docs/format.md, kind "additive_quantizer").
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "io/container/container_reader.h"
#include "io/container/container_writer.h"
#include "io/container/metadata.h"
#include "nearwise/quantize/additive_quantizer.h"

namespace nearwise {
namespace {

constexpr std::string_view kind = "additive_quantizer";

}  // namespace

void save(const AdditiveQuantizer& quantizer, const std::filesystem::path& path,
          const std::map<std::string, std::string>& provenance) {
  ContainerWriter writer(path, std::string(kind));
  writer.write_metadata({{"provenance", provenance}});
  writer.write_section(
      "codewords",
      MatrixView<const float>(quantizer.codewords().data(),
                              quantizer.codebooks() * AdditiveQuantizer::centroids, quantizer.dim()));
  writer.write_section("norms",
                       MatrixView<const float>(quantizer.norms().data(), quantizer.norms().size(), 1));
  writer.commit();
}

AdditiveQuantizer load_additive_quantizer(const std::filesystem::path& path) {
  const LostPagesScope lost_pages;
  const ContainerReader reader = ContainerReader::open(path);
  reader.expect(kind, {"metadata", "codewords", "norms"});
  reader.verify();
  static_cast<void>(read_provenance(reader.metadata(), reader.source()));
  const auto codewords = reader.section("codewords").rows<float>();
  const auto norms = reader.section("norms").rows<float>();
  try {
    AdditiveQuantizer quantizer = AdditiveQuantizer::from_codebooks(
        codewords.cols(), {codewords.data(), codewords.rows() * codewords.cols()},
        {norms.data(), norms.rows() * norms.cols()});
    check_lost_pages();
    return quantizer;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    fail(ErrorCode::corrupt, "{}: {}", reader.source(), error.what());
  }
}

}  // namespace nearwise
