// Search within a radius against the oracle: offsets, ids and the bits of distances at every instruction set.
//
// What these would catch: a row that lies exactly on the radius and is lost to a rounding, or one just beyond
// it that is let in; a radius compared with squares, or with scores, instead of what is reported; lists of
// candidates that overflow; answers of several tiles, blocks or shards in the wrong order or with the wrong
// ids.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "nearwise/error.h"
#include "nearwise/exact.h"
#include "support/attacks.h"
#include "support/byte_attacks.h"
#include "support/cancelling.h"
#include "support/range_cases.h"

namespace nearwise {
namespace {

using support::every_instruction_set;
using support::expect_range;
using support::Kind;
using support::Layout;
using support::next_stricter;
using support::Problem;
using support::radius_at_rank;
using support::Rows;
using support::same;

constexpr float infinity = std::numeric_limits<float>::infinity();

class RangeSearch : public testing::TestWithParam<Metric> {};

INSTANTIATE_TEST_SUITE_P(Metric, RangeSearch, testing::ValuesIn(support::every_metric), support::metric_name);

// The radius is always a distance that is reported, and the next one that excludes it.
TEST_P(RangeSearch, EveryKindOfDataForEveryPairOfTypes) {
  constexpr std::array<std::size_t, 8> dims = {1, 2, 8, 17, 33, 64, 100, 128};
  constexpr std::array layouts = {Layout::dense, Layout::padded, Layout::unaligned};
  std::uint64_t seed = 8000 + 1000 * static_cast<std::uint64_t>(GetParam());
  for (const Kind kind : support::every_kind)
    for (const ElementType base_type : support::every_type)
      for (const ElementType query_type : support::every_type) {
        ++seed;
        if (base_type != query_type && seed % 4 != 0) continue;  // the usual pairs are those of one type
        const std::size_t rows = 40 + seed * 31 % 200;
        const Problem problem = support::make_problem({.kind = kind,
                                                       .rows = rows,
                                                       .queries = 1 + seed * 7 % 40,
                                                       .dim = dims[seed % dims.size()],
                                                       .base_type = base_type,
                                                       .query_type = query_type,
                                                       .base_layout = layouts[seed % layouts.size()],
                                                       .query_layout = layouts[seed / 3 % layouts.size()],
                                                       .seed = seed});
        SCOPED_TRACE(
            fmt::format("{} {} against {}, seed {}", name(kind), name(query_type), name(base_type), seed));
        const float radius = radius_at_rank(problem.queries, problem.base, seed * 13 % rows, GetParam());
        expect_range(problem.queries, problem.base, radius, GetParam());
        expect_range(problem.queries, problem.base, next_stricter(GetParam(), radius), GetParam());
        if (HasFailure()) return;
      }
}

// What passes exactly on the radius is there, for every rank of a query; with the next stricter radius it is
// not.
TEST_P(RangeSearch, TheRadiusItselfIsInside) {
  for (const ElementType type : {ElementType::f32, ElementType::u8}) {
    const Problem problem = support::make_problem({.kind = Kind::normal,
                                                   .rows = 90,
                                                   .queries = 6,
                                                   .dim = 19,
                                                   .base_type = type,
                                                   .query_type = type,
                                                   .seed = 8500});
    for (std::size_t rank = 0; rank < 90; rank += 11) {
      const float radius = radius_at_rank(problem.queries, problem.base, rank, GetParam());
      const std::size_t with = oracle::range(problem.queries, problem.base, radius, GetParam()).offsets[1];
      const std::size_t without =
          oracle::range(problem.queries, problem.base, next_stricter(GetParam(), radius), GetParam())
              .offsets[1];
      ASSERT_GT(with, without) << "the radius is no distance of the first query";
      expect_range(problem.queries, problem.base, radius, GetParam());
      expect_range(problem.queries, problem.base, next_stricter(GetParam(), radius), GetParam());
    }
  }
}

// Rows that no product in bf16 or f32 can tell apart, around the radius.
TEST_P(RangeSearch, DataMadeToFoolIt) {
  using Make = support::Numbers (*)(const support::Shape&);
  namespace attacks = support::attacks;
  const auto run = [&](Make make, ElementType type) {
    const support::Numbers numbers = make({.rows = 400, .queries = 12, .dim = 65, .seed = 8600});
    const Rows queries(numbers.queries, type);
    const Rows base(numbers.base, type);
    const float radius = radius_at_rank(queries, base, 20, GetParam());
    expect_range(queries, base, radius, GetParam());
    expect_range(queries, base, next_stricter(GetParam(), radius), GetParam());
  };
  for (const Make make :
       {attacks::halfway_to_one, attacks::colliding<8>, attacks::correlated_residuals<16>,
        attacks::tight_clusters<9>, attacks::tight_clusters<24>, attacks::offset_with_ties,
        attacks::last_bits, attacks::mixed_blocks, attacks::outlier_row<60>, attacks::cancelling_pairs,
        attacks::bf16_denormals, attacks::smallest_steps, attacks::unit_rows_seen_from_the_origin})
    run(make, ElementType::f32);
  run(attacks::u8_extremes, ElementType::u8);
  run(attacks::i8_extremes, ElementType::i8);
}

// 0 finds exact copies only (and what is reported as 0), less than 0 nothing, infinity everything.
TEST_P(RangeSearch, RadiiAtTheEdges) {
  for (const Kind kind : {Kind::exact_duplicates, Kind::zero_rows, Kind::denormal, Kind::largest})
    for (const ElementType type : {ElementType::f32, ElementType::i8}) {
      const Problem problem = support::make_problem({.kind = kind,
                                                     .rows = 150,
                                                     .queries = 9,
                                                     .dim = 6,
                                                     .base_type = type,
                                                     .query_type = type,
                                                     .seed = 8700});
      SCOPED_TRACE(fmt::format("{} {}", name(kind), name(type)));
      for (const float radius :
           {0.0F, -0.0F, 0x1p-149F, -0x1p-149F, -5.0F, 1.0F, 2.0F, 3e38F, -3e38F,
            std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest(), infinity, -infinity})
        expect_range(problem.queries, problem.base, radius, GetParam());
    }
}

TEST_P(RangeSearch, EverythingAndNothing) {
  const Rows rows(support::generate(Kind::normal, 70, 5, 8701), ElementType::f32);
  const bool product = GetParam() == Metric::inner_product;
  for (const Context& context : every_instruction_set()) {
    const RangeNeighbors all =
        range_search(context, rows, rows, product ? -infinity : infinity, {.metric = GetParam()});
    EXPECT_EQ(all.ids.size(), 70U * 70U);
    const RangeNeighbors none =
        range_search(context, rows, rows, product ? infinity : -1.0F, {.metric = GetParam()});
    EXPECT_EQ(none.offsets, std::vector<std::size_t>(71, 0));
    EXPECT_TRUE(none.ids.empty());
    EXPECT_TRUE(none.distances.empty());
  }
}

TEST_P(RangeSearch, NoRowsOrNoQueries) {
  const Rows rows(support::generate(Kind::normal, 7, 5, 8702), ElementType::f32);
  const RowsView none = rows.view().slice(0, 0);
  for (const Context& context : every_instruction_set()) {
    const RangeOptions options = {.metric = GetParam()};
    EXPECT_EQ(range_search(context, rows, none, 1, options).offsets, std::vector<std::size_t>(8, 0));
    EXPECT_EQ(range_search(context, none, rows, 1, options).offsets, std::vector<std::size_t>(1, 0));
    EXPECT_EQ(range_search(context, none, none, 1, options).offsets, std::vector<std::size_t>(1, 0));
  }
}

// Equal distances in the order of ids, over all blocks of a base and all lists that were full in between.
TEST_P(RangeSearch, TiesGoByIdAndListsMayOverflow) {
  for (const ElementType type : {ElementType::f32, ElementType::u8})
    for (const std::size_t queries : {1UL, 35UL}) {
      const Problem problem = support::make_problem({.kind = Kind::integers,
                                                     .rows = 5000,
                                                     .queries = queries,
                                                     .dim = 4,
                                                     .base_type = type,
                                                     .query_type = type,
                                                     .seed = 8800});
      // Thousands of answers of each query, and as many that are none.
      const float radius = radius_at_rank(problem.queries, problem.base, 2500, GetParam());
      expect_range(problem.queries, problem.base, radius, GetParam());
    }
}

// Shards: few queries, many rows, several threads. Would catch: ids without the first row of their shard.
TEST(RangeSearchThreads, ShardsGiveTheSameBytes) {
  for (const Metric metric : support::every_metric)
    for (const std::size_t queries : {1UL, 3UL, 70UL}) {
      const Problem problem = support::make_problem(
          {.kind = Kind::integers, .rows = 20'000, .queries = queries, .dim = 5, .seed = 8900});
      const float radius = radius_at_rank(problem.queries, problem.base, 300, metric);
      const oracle::RangeAnswer expected = oracle::range(problem.queries, problem.base, radius, metric);
      for (const int threads : {1, 2, 3, 4})
        EXPECT_TRUE(same(expected, range_search(Context::cpu({.threads = threads}), problem.queries,
                                                problem.base, radius, {.metric = metric})))
            << threads << " threads, " << queries << " queries, " << name(metric);
    }
}

// Nobody knows beforehand how many answers there will be: a limit is kept, or refused when it is reached.
TEST(RangeSearchMemory, EveryLimitIsKept) {
  const Problem problem =
      support::make_problem({.kind = Kind::normal, .rows = 3000, .queries = 100, .dim = 12, .seed = 9000});
  const float radius = radius_at_rank(problem.queries, problem.base, 600, Metric::sqeuclidean);
  const oracle::RangeAnswer expected =
      oracle::range(problem.queries, problem.base, radius, Metric::sqeuclidean);
  const std::size_t answer_bytes = expected.ids.size() * (sizeof(Id) + sizeof(float));
  for (const std::string& isa : instruction_sets())
    for (const int threads : {1, 3}) {
      int answered = 0;
      int refused = 0;
      for (std::uint64_t limit = 20'000; limit < 16'000'000; limit *= 2) {
        SCOPED_TRACE(fmt::format("{}, {} threads, limit {}", isa, threads, limit));
        const Context context = Context::cpu({.threads = threads, .memory_limit = limit, .isa = isa});
        const auto error = support::error_from([&] {
          EXPECT_TRUE(same(expected, range_search(context, problem.queries, problem.base, radius)));
          EXPECT_GE(limit, answer_bytes) << "the answer alone exceeds the limit";
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

TEST(RangeSearchCancel, StopsAtAnyReport) {
  const Problem problem =
      support::make_problem({.kind = Kind::normal, .rows = 9000, .queries = 200, .dim = 16, .seed = 9100});
  for (const std::string& isa : instruction_sets())
    for (const int threads : {1, 2})
      support::expect_cancelled_at_report(0, threads, isa, [&](const Context& context) {
        range_search(context, problem.queries, problem.base, 9);
      });
}

template <typename Call>
void expect_refused(const Call& call, const std::string& words) {
  for (const Context& context : every_instruction_set()) {
    const auto error = support::error_from([&] { call(context); });
    ASSERT_TRUE(error.has_value()) << "not refused at " << context.isa();
    EXPECT_EQ(error->code(), ErrorCode::invalid_argument) << error->what();
    EXPECT_NE(std::string(error->what()).find(words), std::string::npos) << error->what();
    EXPECT_EQ(context.memory_used(), 0U);
  }
}

TEST(RangeSearchErrors, AreRefusedInWords) {
  Rows rows(support::generate(Kind::normal, 300, 5, 9200), ElementType::f32);
  const Rows wider(support::generate(Kind::normal, 3, 6, 9201), ElementType::f32);
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Metric metric : support::every_metric) {
    expect_refused(
        [&](const Context& context) { range_search(context, rows, rows, nan, {.metric = metric}); },
        "range_search: the radius must be a number");
    expect_refused([&](const Context& context) { range_search(context, wider, rows, 1, {.metric = metric}); },
                   "got 6 and 5");
  }
  const Rows good = rows;
  rows.put(299, 4, nan);
  rows.put(200, 0, infinity);
  for (const Metric metric : support::every_metric) {
    expect_refused([&](const Context& context) { range_search(context, good, rows, 1, {.metric = metric}); },
                   "base row 200 ");
    expect_refused([&](const Context& context) { range_search(context, rows, good, 1, {.metric = metric}); },
                   "query row 200 ");
  }
}

}  // namespace
}  // namespace nearwise
