// Saved pairs and deduplications: what is saved can be loaded, and only what a join or dedup() returns.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "io/changed_metadata.h"
#include "io/expect_error.h"
#include "io/temporary_folder.h"
#include "nearwise/dedup.h"
#include "nearwise/storage.h"
#include "support/range_cases.h"

namespace nearwise {
namespace {

using support::Kind;

constexpr float inf = std::numeric_limits<float>::infinity();

SavedPairs pairs() {
  return {.pairs = {{0, 2, 2, 3, 3}, {1, 3, 3}, {1, 2, 0.5F}},
          .metric = Metric::euclidean,
          .threshold = 2,
          .provenance = {{"command", "join"}}};
}

SavedDeduplication chain() {
  return {.deduplication = {.kept = {0, 4},
                            .groups = {0, 0, 0, 4, 4},
                            .removed_by = {no_id, 0, 1, 4, no_id},
                            .distances = {-inf, 3, 2, 2.5F, -inf},
                            .pairs = 3},
          .metric = Metric::inner_product,
          .threshold = 2,
          .grouping = DuplicateGrouping::connected,
          .keep = KeptRow::scored,
          .provenance = {{"command", "dedup"}}};
}

TEST(DuplicateFiles, AreLoadedAsSaved) {
  const testing_io::TemporaryFolder folder;
  save(pairs(), folder / "pairs.nw");
  const SavedPairs loaded = load_pairs(folder / "pairs.nw");
  EXPECT_EQ(loaded.pairs.offsets, pairs().pairs.offsets);
  EXPECT_EQ(loaded.pairs.ids, pairs().pairs.ids);
  EXPECT_EQ(loaded.pairs.distances, pairs().pairs.distances);
  EXPECT_EQ(loaded.metric, Metric::euclidean);
  EXPECT_EQ(loaded.threshold, 2);
  EXPECT_EQ(loaded.provenance, pairs().provenance);
  EXPECT_EQ(verify(folder / "pairs.nw").kind, "pairs");
  EXPECT_EQ(inspect(folder / "pairs.nw").version_minor, 5);

  save(chain(), folder / "dedup.nw");
  const SavedDeduplication found = load_deduplication(folder / "dedup.nw");
  EXPECT_EQ(found.deduplication.kept, chain().deduplication.kept);
  EXPECT_EQ(found.deduplication.groups, chain().deduplication.groups);
  EXPECT_EQ(found.deduplication.removed_by, chain().deduplication.removed_by);
  EXPECT_EQ(found.deduplication.distances, chain().deduplication.distances);
  EXPECT_EQ(found.deduplication.pairs, 3U);
  EXPECT_EQ(found.metric, Metric::inner_product);
  EXPECT_EQ(found.threshold, 2);
  EXPECT_EQ(found.grouping, DuplicateGrouping::connected);
  EXPECT_EQ(found.keep, KeptRow::scored);
  EXPECT_EQ(found.provenance, chain().provenance);
  EXPECT_EQ(verify(folder / "dedup.nw").kind, "deduplication");
  EXPECT_ERROR(load_pairs(folder / "dedup.nw"), invalid_argument, "deduplication");

  // Without rows.
  save(SavedPairs{.pairs = {{0}, {}, {}}}, folder / "none.nw");
  EXPECT_EQ(load_pairs(folder / "none.nw").pairs.offsets.size(), 1U);
  save(SavedDeduplication{}, folder / "none.nw");
  EXPECT_TRUE(load_deduplication(folder / "none.nw").deduplication.kept.empty());
}

TEST(DuplicateFiles, TheNumberOfPairsIsBounded) {
  const testing_io::TemporaryFolder folder;
  save(chain(), folder / "dedup.nw");
  testing_io::expect_bound(folder / "dedup.nw", "/pairs", 25, load_deduplication);
}

// Every result can be saved, whatever the metric.
TEST(DuplicateFiles, HoldEveryResult) {
  const testing_io::TemporaryFolder folder;
  for (const Metric metric : support::every_metric)
    for (const DuplicateGrouping grouping : {DuplicateGrouping::star, DuplicateGrouping::connected}) {
      const support::Rows rows(support::generate(Kind::near_duplicates, 90, 3, 5), ElementType::f32);
      const float threshold = support::radius_at_rank(rows, rows, 6, metric);
      const DedupOptions options = {.metric = metric, .grouping = grouping};
      const Deduplication made = dedup(Context::cpu(), rows, threshold, options);
      save(
          SavedDeduplication{
              .deduplication = made, .metric = metric, .threshold = threshold, .grouping = grouping},
          folder / "dedup.nw");
      EXPECT_EQ(load_deduplication(folder / "dedup.nw").deduplication.removed_by, made.removed_by);
    }
}

TEST(DuplicateFiles, RefuseWhatIsNoResult) {
  const testing_io::TemporaryFolder folder;
  const auto expect_pairs_refused = [&](const std::function<void(SavedPairs&)>& change,
                                        const std::string& words) {
    SavedPairs changed = pairs();
    change(changed);
    EXPECT_ERROR(save(changed, folder / "pairs.nw"), invalid_argument, words);
  };
  expect_pairs_refused([](SavedPairs& saved) { saved.pairs.offsets.clear(); }, "offsets from 0");
  expect_pairs_refused([](SavedPairs& saved) { saved.pairs.offsets.front() = 1; }, "offsets from 0");
  expect_pairs_refused([](SavedPairs& saved) { saved.pairs.offsets.back() = 2; }, "offsets from 0");
  expect_pairs_refused([](SavedPairs& saved) { saved.pairs.distances.pop_back(); }, "offsets from 0");
  expect_pairs_refused([](SavedPairs& saved) { saved.pairs.offsets[2] = 1; }, "offsets: ascending");
  expect_pairs_refused([](SavedPairs& saved) { saved.pairs.offsets[1] = 9; }, "offsets: ascending");
  expect_pairs_refused([](SavedPairs& saved) { saved.pairs.ids[0] = 0; }, "in ascending order");
  expect_pairs_refused([](SavedPairs& saved) { saved.pairs.ids[1] = 1; }, "in ascending order");
  expect_pairs_refused([](SavedPairs& saved) { saved.pairs.ids[1] = 4; }, "in ascending order");
  expect_pairs_refused([](SavedPairs& saved) { saved.pairs.distances[1] = 2.5F; }, "within the threshold");
  expect_pairs_refused([](SavedPairs& saved) { saved.pairs.distances[1] = std::nanf(""); },
                       "within the threshold");
  expect_pairs_refused([](SavedPairs& saved) { saved.threshold = inf; }, "finite threshold");

  const auto expect_refused = [&](const std::function<void(Deduplication&)>& change, const std::string& words,
                                  DuplicateGrouping grouping = DuplicateGrouping::connected) {
    SavedDeduplication changed = chain();
    changed.grouping = grouping;
    change(changed.deduplication);
    EXPECT_ERROR(save(changed, folder / "dedup.nw"), invalid_argument, words);
  };
  expect_refused([](Deduplication& of) { of.pairs = 26; }, "at most 25 of 5 rows expected, 26 found");
  expect_refused([](Deduplication& of) { of.removed_by.pop_back(); }, "as many groups");
  expect_refused([](Deduplication& of) { of.distances.pop_back(); }, "as many groups");
  expect_refused([](Deduplication& of) { of.kept = {0}; }, "kept: the rows");
  expect_refused([](Deduplication& of) { of.kept = {0, 3}; }, "kept: the rows");
  expect_refused([](Deduplication& of) { of.kept = {0, 4, 4}; }, "kept: 2 rows");
  expect_refused([](Deduplication& of) { of.groups[2] = 1; }, "a row that is kept");
  expect_refused([](Deduplication& of) { of.groups[2] = 5; }, "a row that is kept");
  expect_refused([](Deduplication& of) { of.groups[2] = -1; }, "a row that is kept");
  expect_refused([](Deduplication& of) { of.groups[0] = 4; }, "the row itself");
  expect_refused([](Deduplication& of) { of.removed_by[1] = 1; }, "another row of its group");
  expect_refused([](Deduplication& of) { of.removed_by[1] = 9; }, "another row of its group");
  expect_refused([](Deduplication& of) { of.removed_by[1] = -2; }, "another row of its group");
  expect_refused([](Deduplication& of) { of.removed_by[2] = 4; }, "another row of its group");
  expect_refused([](Deduplication& of) { of.distances[1] = 1; }, "within the threshold");
  expect_refused([](Deduplication& of) { of.distances[1] = std::nanf(""); }, "within the threshold");
  expect_refused([](Deduplication& of) { of.distances[0] = 7; }, "which is kept");
  expect_refused([](Deduplication&) {}, "another row of its group", DuplicateGrouping::star);
  EXPECT_FALSE(std::filesystem::exists(folder / "dedup.nw"));
}

}  // namespace
}  // namespace nearwise
