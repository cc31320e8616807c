// Search in inverted lists against its definition: any codec, metric, data and shape, on every instruction set.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/distance.h"
#include "support/list_cases.h"

namespace nearwise {
namespace {

using support::Kind;
using support::ListShape;

// All queries at once, which pack the lists they share, and a few, which look at codes directly.
void check(const ListShape& shape) {
  const support::ListCase made(shape);
  for (const Context& context : support::every_instruction_set()) {
    EXPECT_TRUE(made.holds(made.search(context))) << describe(shape) << ", " << context.isa();
    EXPECT_TRUE(made.holds(made.search_few(context, 3)))
        << "few of " << describe(shape) << ", " << context.isa();
    EXPECT_TRUE(made.holds(made.search_with_norms(context, 3)))
        << "few with terms of " << describe(shape) << ", " << context.isa();
  }
}

class ListSearchMetrics : public testing::TestWithParam<Metric> {};
INSTANTIATE_TEST_SUITE_P(Metric, ListSearchMetrics, testing::ValuesIn(support::every_metric),
                         support::metric_name);

// Would catch: an error bound that is too tight for decoded rows, and scores believed where they mean nothing.
TEST_P(ListSearchMetrics, RowsOfEveryKind) {
  std::uint64_t seed = 100;
  for (const Kind kind : support::every_kind)
    check({.kind = kind, .metric = GetParam(), .rows = 400, .dim = 19, .seed = ++seed});
}

TEST_P(ListSearchMetrics, ProductCodesOfEveryKind) {
  std::uint64_t seed = 200;
  for (const Kind kind : support::every_kind) {
    if (kind == Kind::largest)
      continue;  // sums of centroid and codeword exceed f32: no index holds such rows
    for (const unsigned bits : {4U, 8U})
      check({.kind = kind,
             .metric = GetParam(),
             .rows = 300,
             .dim = 24,
             .parts = 5,
             .bits = bits,
             .seed = ++seed});
  }
}

TEST_P(ListSearchMetrics, AdditiveCodesOfEveryKind) {
  std::uint64_t seed = 250;
  for (const Kind kind : support::every_kind) {
    if (kind == Kind::largest) continue;
    for (const std::size_t parts : {1UL, 4UL})
      check({.kind = kind,
             .metric = GetParam(),
             .rows = 300,
             .dim = 13,
             .parts = parts,
             .additive = true,
             .centred = is_euclidean(GetParam()) && parts == 4,
             .seed = ++seed});
  }
}

TEST_P(ListSearchMetrics, EveryType) {
  std::uint64_t seed = 300;
  for (const ElementType type : support::every_type)
    for (const std::size_t parts : {0UL, 4UL})
      for (const bool rerank : {false, true})
        check({.kind = Kind::exact_duplicates,
               .metric = GetParam(),
               .type = type,
               .dim = 17,
               .parts = parts,
               .k = 7,
               .candidates = rerank ? 30UL : 7UL,
               .rerank = rerank,
               .seed = ++seed});
}

TEST_P(ListSearchMetrics, ManyShapes) {
  const Random random(7, 400 + static_cast<std::uint64_t>(GetParam()));
  for (std::uint64_t i = 0; i < 60; ++i) {
    const auto below = [&](std::uint64_t what, std::size_t bound) {
      return random.below(16 * i + what, bound);
    };
    ListShape shape = {.metric = GetParam(),
                       .rows = below(0, 3) == 0 ? below(1, 5) : 1 + below(1, 1500),
                       .queries = 1 + below(2, 100),
                       .dim = 1 + below(3, 70),
                       .lists = 1 + below(4, 20),
                       .probes = 1 + below(5, 8),
                       .bits = below(6, 2) == 0 ? 4U : 8U,
                       .k = 1 + below(7, below(8, 2) == 0 ? 5 : 200),
                       .rerank = below(9, 2) == 0,
                       .first_id = 0,
                       .seed = 500 + i};
    shape.rows = std::max<std::size_t>(shape.rows, 1);
    shape.parts = below(10, 3) == 0 ? 0 : 1 + below(11, shape.dim);
    shape.candidates = shape.rerank ? shape.k + below(12, 150) : shape.k;
    if (!shape.rerank && below(13, 3) == 0) shape.first_id = Id{1} << 40;
    check(shape);
  }
}

// Identical codes: more equal distances than a list has room for, ordered by id.
TEST(ListSearch, MoreTiesThanRoom) {
  for (const bool rerank : {false, true})
    for (const std::size_t parts : {0UL, 3UL})
      check({.kind = Kind::identical,
             .rows = 3000,
             .queries = 9,
             .dim = 12,
             .lists = 2,
             .probes = 2,
             .parts = parts,
             .k = 20,
             .candidates = rerank ? 50UL : 20UL,
             .rerank = rerank,
             .seed = 9});
}

// Codes of more bytes than are turned at a time, and not a multiple of them; lists of a few blocks and a rest.
TEST(ListSearch, LongCodesForFewQueries) {
  for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product, Metric::cosine})
    for (const unsigned bits : {4U, 8U})
      for (const std::size_t parts : {16UL, 33UL, 77UL})
        check({.metric = metric,
               .rows = 1200,
               .queries = 40,
               .dim = 96,
               .lists = 5,
               .probes = 3,
               .parts = parts,
               .bits = bits,
               .k = 10,
               .candidates = 25,
               .rerank = true,
               .centred = metric == Metric::sqeuclidean,
               .seed = parts + bits});
}

}  // namespace
}  // namespace nearwise
