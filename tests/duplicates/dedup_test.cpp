// Near-duplicates against the oracle, and the promises of the header.
#include "nearwise/dedup.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "nearwise/error.h"
#include "oracle/dedup.h"
#include "support/cancelling.h"
#include "support/range_cases.h"

namespace nearwise {
namespace {

using support::Kind;
using support::radius_at_rank;
using support::Rows;

void expect_equal(const Deduplication& expected, const Deduplication& given) {
  EXPECT_EQ(expected.kept, given.kept);
  EXPECT_EQ(expected.groups, given.groups);
  EXPECT_EQ(expected.removed_by, given.removed_by);
  EXPECT_EQ(expected.distances, given.distances);
}

std::vector<double> scores_of(std::size_t rows, std::uint64_t seed) {
  std::vector<double> scores(rows);  // with ties
  for (std::size_t i = 0; i < rows; ++i) scores[i] = static_cast<double>((i * 37 + seed) % 11) / 7;
  return scores;
}

class Dedup : public testing::TestWithParam<Metric> {};

INSTANTIATE_TEST_SUITE_P(Metric, Dedup, testing::ValuesIn(support::every_metric), support::metric_name);

constexpr std::array every_grouping = {DuplicateGrouping::star, DuplicateGrouping::connected};
constexpr std::array every_keep = {KeptRow::first, KeptRow::medoid, KeptRow::scored};

TEST_P(Dedup, EqualsTheOracle) {
  std::uint64_t seed = 100;
  for (const Kind kind : {Kind::normal, Kind::integers, Kind::near_duplicates, Kind::exact_duplicates,
                          Kind::identical, Kind::zero_rows})
    for (const DuplicateGrouping grouping : every_grouping)
      for (const KeptRow keep : every_keep) {
        const std::size_t count = 20 + ++seed * 31 % 130;
        SCOPED_TRACE(fmt::format("{}, {} rows, {}, {}", name(kind), count, name(grouping), name(keep)));
        const Rows rows(support::generate(kind, count, 3, seed), ElementType::f32);
        const float threshold = radius_at_rank(rows, rows, seed * 7 % 9, GetParam());
        const std::vector<double> scores = scores_of(count, seed);
        DedupOptions options = {.metric = GetParam(), .grouping = grouping, .keep = keep};
        if (keep == KeptRow::scored) options.scores = scores;
        const RangeNeighbors pairs = threshold_join(Context::cpu(), rows, threshold, {.metric = GetParam()});
        const Deduplication expected = oracle::Dedup(pairs, options).find();
        for (const int threads : {1, 3}) {
          const Context context = Context::cpu({.threads = threads});
          const Deduplication given = dedup(context, rows, threshold, options);
          expect_equal(expected, given);
          EXPECT_EQ(given.pairs, pairs.ids.size());
          EXPECT_EQ(context.memory_used(), 0U);
        }
      }
}

// Stars: kept rows are no duplicates of each other, removed ones are duplicates of the kept row.
TEST_P(Dedup, StarsKeepTheirPromise) {
  const Rows rows(support::generate(Kind::integers, 300, 4, 7), ElementType::f32);
  const float threshold = radius_at_rank(rows, rows, 12, GetParam());
  const RangeNeighbors pairs = threshold_join(Context::cpu(), rows, threshold, {.metric = GetParam()});
  const Deduplication found = dedup(Context::cpu(), rows, threshold, {.metric = GetParam()});
  std::vector<bool> is_kept(300);
  for (const Id row : found.kept) is_kept[static_cast<std::size_t>(row)] = true;
  ASSERT_FALSE(found.kept.empty());
  ASSERT_LT(found.kept.size(), 300U);
  for (std::size_t row = 0; row < 300; ++row) {
    for (std::size_t i = pairs.offsets[row]; i < pairs.offsets[row + 1]; ++i)
      EXPECT_FALSE(is_kept[row] && is_kept[static_cast<std::size_t>(pairs.ids[i])]);
    EXPECT_EQ(is_kept[row], found.removed_by[row] == no_id);
    EXPECT_TRUE(is_kept[static_cast<std::size_t>(found.groups[row])]);
    if (!is_kept[row]) {
      EXPECT_EQ(found.removed_by[row], found.groups[row]);
      EXPECT_TRUE(oracle::within(GetParam(), found.distances[row], threshold));
    }
  }
}

// 0 - 1 - 2 - 3, a chain: stars keep both ends of what they cannot reach, components one row.
TEST(DedupChain, GroupsDiffer) {
  const std::vector<float> line = {0, 1, 2, 3};
  const RowsView rows = MatrixView<const float>(line.data(), 4, 1);
  const DedupOptions stars = {.metric = Metric::euclidean};
  EXPECT_EQ(dedup(Context::cpu(), rows, 1, stars).kept, (std::vector<Id>{0, 2}));
  const DedupOptions connected = {.metric = Metric::euclidean, .grouping = DuplicateGrouping::connected};
  const Deduplication one = dedup(Context::cpu(), rows, 1, connected);
  EXPECT_EQ(one.kept, (std::vector<Id>{0}));
  EXPECT_EQ(one.groups, (std::vector<Id>{0, 0, 0, 0}));
  EXPECT_EQ(one.removed_by, (std::vector<Id>{no_id, 0, 1, 2}));
  const DedupOptions medoids = {.metric = Metric::euclidean, .keep = KeptRow::medoid};
  EXPECT_EQ(dedup(Context::cpu(), rows, 1, medoids).kept, (std::vector<Id>{1, 3}));
  const std::vector<double> scores = {1, 2, 3, 4};
  const DedupOptions scored = {.metric = Metric::euclidean, .keep = KeptRow::scored, .scores = scores};
  EXPECT_EQ(dedup(Context::cpu(), rows, 1, scored).kept, (std::vector<Id>{1, 3}));
}

TEST(DedupSimilarity, IsAThresholdOfReportedDistances) {
  EXPECT_EQ(threshold_of_similarity(Metric::cosine, 0.95), 0.05F);
  EXPECT_EQ(threshold_of_similarity(Metric::cosine, 1), 0.0F);
  EXPECT_EQ(threshold_of_similarity(Metric::inner_product, 12.5), 12.5F);
  for (const Metric metric : {Metric::euclidean, Metric::sqeuclidean})
    EXPECT_TRUE(support::error_from([&] { threshold_of_similarity(metric, 0.9); }));
  EXPECT_TRUE(support::error_from([] { threshold_of_similarity(Metric::cosine, std::nan("")); }));
  EXPECT_TRUE(support::error_from([] { threshold_of_similarity(Metric::cosine, 95); }));
}

TEST(DedupMemory, EveryLimitIsKept) {
  const Rows rows(support::generate(Kind::near_duplicates, 3000, 12, 9900), ElementType::f32);
  const float threshold = radius_at_rank(rows, rows, 5, Metric::sqeuclidean);
  const Deduplication expected = dedup(Context::cpu(), rows, threshold);
  int answered = 0;
  int refused = 0;
  for (std::uint64_t limit = 20'000; limit < 64'000'000; limit *= 2) {
    const Context context = Context::cpu({.threads = 2, .memory_limit = limit});
    const auto error = support::error_from([&] { expect_equal(expected, dedup(context, rows, threshold)); });
    EXPECT_EQ(error ? error->code() : ErrorCode::out_of_memory, ErrorCode::out_of_memory);
    ++(error ? refused : answered);
    EXPECT_LE(context.memory_peak(), limit);
    EXPECT_EQ(context.memory_used(), 0U);
  }
  EXPECT_GT(answered, 0);
  EXPECT_GT(refused, 0);
}

template <typename Call>
void expect_refused(const Call& call, const std::string& words) {
  const auto error = support::error_from(call);
  ASSERT_TRUE(error.has_value()) << words;
  EXPECT_EQ(error->code(), ErrorCode::invalid_argument);
  EXPECT_NE(std::string(error->what()).find(words), std::string::npos) << error->what();
}

TEST(DedupErrors, AreRefusedInWords) {
  const Rows rows(support::generate(Kind::normal, 10, 3, 1), ElementType::f32);
  std::vector<double> scores(10);
  const auto with = [&](const DedupOptions& options) {
    return [&] { dedup(Context::cpu(), rows, 1, options); };
  };
  const DedupOptions none = {.keep = KeptRow::scored};
  expect_refused(with(none), "a score for each of the 10 rows expected, got 0");
  const DedupOptions unasked = {.scores = scores};
  expect_refused(with(unasked), "scores need keep = scored");
  scores[3] = std::nan("");
  const DedupOptions unordered = {.keep = KeptRow::scored, .scores = scores};
  expect_refused(with(unordered), "the score of row 3 is NaN");

  const auto of_pairs = [](const RangeNeighbors& pairs) {
    return [&] { dedup_pairs(Context::cpu(), pairs); };
  };
  const std::vector<RangeNeighbors> wrong = {
      {{}, {}, {}}, {{0, 2}, {1}, {1}}, {{1, 1}, {0}, {1}}, {{0, 1, 0, 1}, {1}, {1}}};
  for (const RangeNeighbors& pairs : wrong) expect_refused(of_pairs(pairs), "offsets must ascend");
  const RangeNeighbors distances = {{0, 1, 1}, {1}, {}};
  expect_refused(of_pairs(distances), "as many distances as ids");
  const std::vector<RangeNeighbors> rows_out_of_order = {
      {{0, 1, 1}, {0}, {1}}, {{0, 1, 1}, {2}, {1}}, {{0, 2, 2, 2}, {2, 1}, {1, 1}}, {{0, 1, 1}, {-1}, {1}}};
  for (const RangeNeighbors& pairs : rows_out_of_order) expect_refused(of_pairs(pairs), "in ascending order");
  const RangeNeighbors nan = {{0, 1, 1}, {1}, {std::nanf("")}};
  expect_refused(of_pairs(nan), "is NaN");
}

}  // namespace
}  // namespace nearwise
