// Saved product quantizers, with and without a rotation: they come back as they were, and no damage goes
// unnoticed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <vector>

#include "io/changed_bytes.h"
#include "io/temporary_folder.h"
#include "nearwise/quantize/optimized_product_quantizer.h"
#include "nearwise/storage.h"
#include "support/error_of.h"
#include "support/quantizer_cases.h"

namespace nearwise {
namespace {

using support::error_of;
using support::Kind;
using testing_io::TemporaryFolder;

// Two axes change places, so that rows differ from rotated ones.
OptimizedProductQuantizer rotated(std::size_t dim, std::size_t parts, unsigned bits) {
  std::vector<float> matrix(dim * dim, 0.0F);
  for (std::size_t i = 0; i < dim; ++i) matrix[i * dim + (i < 2 ? 1 - i : i)] = 1;
  return {Rotation::from_matrix(dim, dim, matrix), support::untrained(Kind::normal, dim, parts, bits, 160)};
}

void expect_equal(const ProductQuantizer& left, const ProductQuantizer& right) {
  EXPECT_EQ(left.dim(), right.dim());
  EXPECT_EQ(left.parts(), right.parts());
  EXPECT_EQ(left.bits(), right.bits());
  EXPECT_TRUE(std::ranges::equal(left.codebooks(), right.codebooks()));
}

TEST(ProductFile, ComesBackAsItWas) {
  const TemporaryFolder folder;
  for (const unsigned bits : {4U, 8U}) {
    const ProductQuantizer quantizer = support::untrained(Kind::normal, 7, 3, bits, 161);
    save(quantizer, folder / "words.nw", {{"rows", "none"}});
    expect_equal(load_product_quantizer(folder / "words.nw"), quantizer);
    const ContainerInfo info = inspect(folder / "words.nw");
    EXPECT_EQ(info.kind, "product_quantizer");
    EXPECT_EQ(info.metadata.at("provenance.rows"), "none");
  }
}

TEST(ProductFile, ComesBackWithItsRotation) {
  const TemporaryFolder folder;
  const OptimizedProductQuantizer quantizer = rotated(6, 2, 8);
  save(quantizer, folder / "words.nw");
  const OptimizedProductQuantizer loaded = load_optimized_product_quantizer(folder / "words.nw");
  expect_equal(loaded.quantizer, quantizer.quantizer);
  EXPECT_TRUE(std::ranges::equal(loaded.rotation.matrix(), quantizer.rotation.matrix()));
}

// Would catch: rows encoded without the rotation that the codewords are for.
TEST(ProductFile, PlainAndRotatedOnesAreNotMistakenForEachOther) {
  const TemporaryFolder folder;
  save(rotated(6, 2, 8), folder / "rotated.nw");
  EXPECT_EQ(error_of([&] { load_product_quantizer(folder / "rotated.nw"); }).code(),
            ErrorCode::invalid_argument);
  save(support::untrained(Kind::normal, 6, 2, 8, 162), folder / "plain.nw");
  EXPECT_EQ(error_of([&] { load_optimized_product_quantizer(folder / "plain.nw"); }).code(),
            ErrorCode::invalid_argument);
}

// With and without right checksums.
TEST(ProductFile, ChangedBytesAreFoundOrHarmless) {
  const TemporaryFolder folder;
  save(rotated(4, 2, 4), folder / "words.nw");
  testing_io::expect_changes_found_or_harmless(
      folder / "words.nw", 89, [](const std::filesystem::path& path) {
        EXPECT_EQ(load_optimized_product_quantizer(path).quantizer.dim(), 4U);
      });
}

}  // namespace
}  // namespace nearwise
