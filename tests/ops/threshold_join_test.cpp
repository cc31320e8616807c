// All pairs within a threshold against the oracle: offsets, ids and bits of distances at every instruction
// set.
//
// What these would catch: a pair on both sides of a tile's end that is lost or found twice, ids without the
// first row of their tile or shard, a row paired with itself, a pair exactly on the threshold that is lost.
#include "nearwise/threshold_join.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "nearwise/error.h"
#include "support/attacks.h"
#include "support/byte_attacks.h"
#include "support/cancelling.h"
#include "support/range_cases.h"

namespace nearwise {
namespace {

using support::every_instruction_set;
using support::Kind;
using support::next_stricter;
using support::radius_at_rank;
using support::Rows;
using support::same;

void expect_pairs(RowsView rows, float threshold, Metric metric) {
  const oracle::RangeAnswer expected = oracle::pairs(rows, threshold, metric);
  for (const Context& context : every_instruction_set()) {
    EXPECT_TRUE(same(expected, threshold_join(context, rows, threshold, {.metric = metric})))
        << "threshold " << threshold << " at " << context.isa();
    EXPECT_EQ(context.memory_used(), 0U);
  }
}

class ThresholdJoin : public testing::TestWithParam<Metric> {};

INSTANTIATE_TEST_SUITE_P(Metric, ThresholdJoin, testing::ValuesIn(support::every_metric),
                         support::metric_name);

// The threshold is always a distance that is reported, and the next one that excludes it.
TEST_P(ThresholdJoin, EveryKindOfDataAndType) {
  constexpr std::array<std::size_t, 6> dims = {1, 2, 17, 33, 64, 100};
  std::uint64_t seed = 9500 + 1000 * static_cast<std::uint64_t>(GetParam());
  for (const Kind kind : support::every_kind)
    for (const ElementType type : support::every_type) {
      ++seed;
      const std::size_t count = 30 + seed * 31 % 150;
      SCOPED_TRACE(fmt::format("{} {}, seed {}", name(kind), name(type), seed));
      const Rows rows(support::generate(kind, count, dims[seed % dims.size()], seed), type);
      const float threshold = radius_at_rank(rows, rows, 1 + seed * 13 % (count / 2), GetParam());
      expect_pairs(rows, threshold, GetParam());
      expect_pairs(rows, next_stricter(GetParam(), threshold), GetParam());
      if (HasFailure()) return;
    }
}

// Rows that no product in bf16 or f32 can tell apart, around the threshold.
TEST_P(ThresholdJoin, DataMadeToFoolIt) {
  using Make = support::Numbers (*)(const support::Shape&);
  namespace attacks = support::attacks;
  const auto run = [&](Make make, ElementType type) {
    const support::Numbers numbers = make({.rows = 300, .queries = 12, .dim = 65, .seed = 8600});
    const Rows rows(numbers.base, type);
    const float threshold = radius_at_rank(rows, rows, 20, GetParam());
    expect_pairs(rows, threshold, GetParam());
    expect_pairs(rows, next_stricter(GetParam(), threshold), GetParam());
  };
  for (const Make make :
       {attacks::halfway_to_one, attacks::colliding<8>, attacks::tight_clusters<9>, attacks::offset_with_ties,
        attacks::last_bits, attacks::mixed_blocks, attacks::cancelling_pairs, attacks::bf16_denormals})
    run(make, ElementType::f32);
  run(attacks::u8_extremes, ElementType::u8);
  run(attacks::i8_extremes, ElementType::i8);
}

TEST_P(ThresholdJoin, EverythingNothingAndFewRows) {
  const Rows rows(support::generate(Kind::normal, 70, 5, 9701), ElementType::f32);
  constexpr float largest = std::numeric_limits<float>::infinity();
  const bool product = GetParam() == Metric::inner_product;
  for (const Context& context : every_instruction_set()) {
    const ThresholdJoinOptions options = {.metric = GetParam()};
    EXPECT_EQ(threshold_join(context, rows, product ? -largest : largest, options).ids.size(), 70U * 69U / 2);
    const RangeNeighbors none = threshold_join(context, rows, product ? largest : -1.0F, options);
    EXPECT_EQ(none.offsets, std::vector<std::size_t>(71, 0));
    for (const std::size_t few : {0UL, 1UL, 2UL}) {
      const RangeNeighbors found =
          threshold_join(context, rows.view().slice(0, few), product ? -largest : largest, options);
      EXPECT_EQ(found.offsets.size(), few + 1);
      EXPECT_EQ(found.ids.size(), few == 2 ? 1U : 0U);
    }
  }
}

// Many tiles: of 1,024 rows without a limit, of fewer with one; shards where a tile does not occupy the
// threads.
TEST(ThresholdJoinThreads, TilesAndShardsGiveTheSameBytes) {
  for (const Metric metric : support::every_metric)
    for (const std::size_t count : {1023UL, 1025UL, 5000UL}) {
      const Rows rows(support::generate(Kind::integers, count, 6, 9800 + count), ElementType::f32);
      const float threshold = radius_at_rank(rows, rows, 6, metric);
      const oracle::RangeAnswer expected = oracle::pairs(rows, threshold, metric);
      for (const int threads : {1, 2, 3, 4})
        EXPECT_TRUE(same(expected, threshold_join(Context::cpu({.threads = threads}), rows, threshold,
                                                  {.metric = metric})))
            << threads << " threads, " << count << " rows, " << name(metric);
    }
}

TEST(ThresholdJoinMemory, EveryLimitIsKept) {
  const Rows rows(support::generate(Kind::normal, 3000, 12, 9900), ElementType::f32);
  const float threshold = radius_at_rank(rows, rows, 40, Metric::sqeuclidean);
  const oracle::RangeAnswer expected = oracle::pairs(rows, threshold, Metric::sqeuclidean);
  for (const std::string& isa : instruction_sets())
    for (const int threads : {1, 3}) {
      int answered = 0;
      int refused = 0;
      for (std::uint64_t limit = 20'000; limit < 64'000'000; limit *= 2) {
        SCOPED_TRACE(fmt::format("{}, {} threads, limit {}", isa, threads, limit));
        const Context context = Context::cpu({.threads = threads, .memory_limit = limit, .isa = isa});
        const auto error = support::error_from([&] {
          EXPECT_TRUE(same(expected, threshold_join(context, rows, threshold)));
          ++answered;
        });
        if (error) {
          EXPECT_EQ(error->code(), ErrorCode::out_of_memory) << error->what();
          ++refused;
        }
        EXPECT_LE(context.memory_peak(), limit);
        EXPECT_EQ(context.memory_used(), 0U);
      }
      EXPECT_GT(answered, 0) << isa;
      EXPECT_GT(refused, 0) << isa;
    }
}

TEST(ThresholdJoinCancel, StopsAtAnyReport) {
  const Rows rows(support::generate(Kind::normal, 6000, 16, 9910), ElementType::f32);
  for (const std::string& isa : instruction_sets())
    support::expect_cancelled_at_report(0, 2, isa,
                                        [&](const Context& context) { threshold_join(context, rows, 1); });
}

TEST(ThresholdJoinErrors, AreRefusedInWords) {
  Rows rows(support::generate(Kind::normal, 2500, 5, 9920), ElementType::f32);
  const auto refusal = [&](float threshold) {
    const auto error = support::error_from([&] { threshold_join(Context::cpu(), rows, threshold); });
    return error ? std::string(error->what()) : std::string("not refused");
  };
  EXPECT_NE(refusal(std::numeric_limits<float>::quiet_NaN()).find("threshold_join: the threshold must be"),
            std::string::npos);
  rows.put(2400, 4, std::numeric_limits<float>::quiet_NaN());
  EXPECT_NE(refusal(1).find("2400"), std::string::npos) << refusal(1);
}

}  // namespace
}  // namespace nearwise
