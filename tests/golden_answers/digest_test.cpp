// A digest that misses a change would make every golden answer worthless.
#include "golden_answers/digest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "golden_answers/data.h"
#include "golden_answers/golden.h"
#include "io/temporary_folder.h"
#include "nearwise/storage.h"

namespace nearwise::golden {
namespace {

SavedNeighbors small_answer() {
  return {knn(context(), make_rows(5, 19, 2), make_rows(50, 19, 1), 4), Metric::sqeuclidean, {}};
}

std::uint64_t digest_of(const Neighbors& neighbors) {
  Digest digest;
  digest.add(neighbors);
  return digest.value();
}

TEST(GoldenDigest, SeesTheLastBitOfADistanceAndEveryId) {
  const SavedNeighbors given = small_answer();
  SavedNeighbors changed = small_answer();
  EXPECT_EQ(digest_of(given.neighbors), digest_of(changed.neighbors));
  float& distance = changed.neighbors.distances(4, 3);
  distance = std::nextafter(distance, 1e30F);
  EXPECT_NE(digest_of(given.neighbors), digest_of(changed.neighbors));
  changed = small_answer();
  ++changed.neighbors.ids(2, 1);
  EXPECT_NE(digest_of(given.neighbors), digest_of(changed.neighbors));
}

TEST(GoldenDigest, SectionsAreAllButMetadata) {
  const testing_io::TemporaryFolder folder;
  const auto digests = [&](const SavedNeighbors& saved) {
    save(saved, folder / "saved.nw");
    Digest sections;
    sections.add_sections(folder / "saved.nw");
    Digest bytes;
    bytes.add_file(folder / "saved.nw");
    return std::pair(sections.value(), bytes.value());
  };
  const auto given = digests(small_answer());
  SavedNeighbors other_text = small_answer();
  other_text.provenance = {{"command", "knn"}};
  EXPECT_EQ(digests(other_text).first, given.first);
  EXPECT_NE(digests(other_text).second, given.second);
  SavedNeighbors other_id = small_answer();
  ++other_id.neighbors.ids(2, 1);
  EXPECT_NE(digests(other_id).first, given.first);
}

}  // namespace
}  // namespace nearwise::golden
