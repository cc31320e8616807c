// Saved additive quantizers: they come back as they were, and no damage goes unnoticed.
#include <gtest/gtest.h>

#include <filesystem>

#include "io/changed_bytes.h"
#include "io/temporary_folder.h"
#include "nearwise/storage.h"
#include "support/additive_cases.h"
#include "support/error_of.h"

namespace nearwise {
namespace {

using support::error_of;
using support::Kind;
using testing_io::TemporaryFolder;

TEST(AdditiveFile, ComesBackAsItWas) {
  const TemporaryFolder folder;
  const AdditiveQuantizer quantizer = support::untrained_additive(Kind::normal, 5, 2, 150);
  save(quantizer, folder / "words.nw", {{"rows", "none"}});
  const AdditiveQuantizer loaded = load_additive_quantizer(folder / "words.nw");
  EXPECT_EQ(loaded.dim(), 5U);
  EXPECT_EQ(loaded.codebooks(), 2U);
  EXPECT_EQ(support::codewords_of(loaded), support::codewords_of(quantizer));
  const ContainerInfo info = inspect(folder / "words.nw");
  EXPECT_EQ(info.kind, "additive_quantizer");
  EXPECT_EQ(info.metadata.at("provenance.rows"), "none");
}

TEST(AdditiveFile, AnotherKindIsRefused) {
  const TemporaryFolder folder;
  SavedNeighbors other{{Matrix<Id>(1, 1), Matrix<float>(1, 1)}, Metric::sqeuclidean, {}};
  other.neighbors.ids(0, 0) = 0;
  other.neighbors.distances(0, 0) = 0;
  save(other, folder / "other.nw");
  EXPECT_EQ(error_of([&] { load_additive_quantizer(folder / "other.nw"); }).code(),
            ErrorCode::invalid_argument);
}

// With and without right checksums.
TEST(AdditiveFile, ChangedBytesAreFoundOrHarmless) {
  const TemporaryFolder folder;
  save(support::untrained_additive(Kind::normal, 3, 1, 151), folder / "words.nw");
  testing_io::expect_changes_found_or_harmless(
      folder / "words.nw", 97, [](const std::filesystem::path& path) {
        EXPECT_EQ(load_additive_quantizer(path).norms().size(), 256U);
      });
}

}  // namespace
}  // namespace nearwise
