// Exact search against the oracle: many small generated cases, ids and the bits of distances, at every
// compiled instruction set.
//
// What these would catch: a wrong lane or tail in any kernel (tails), an FMA or another order of summation, a
// conversion of f16 or bf16 that loses denormals, a pair of element types dispatched to the wrong kernel, a
// discarded candidate (any bound that is too tight, on the data where it is tightest), ties broken by
// position in a tile instead of by id, sums of squares in f32 (huge, offset), zero norms (zero rows), reads
// beyond a row.
#include "nearwise/exact.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::CaseRunner;
using support::Kind;
using support::KnnCase;
using support::Layout;

// Around every vector width, tile height and unrolling that a kernel might have.
constexpr std::array<std::size_t, 13> tails = {1, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65};
constexpr std::array layouts = {Layout::dense, Layout::padded, Layout::unaligned};

// Choices of one case, drawn one after the other from its seed.
class Choices {
 public:
  explicit Choices(std::uint64_t seed) : random_(support::random_for(seed, support::Purpose::shapes)) {}
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_.below(next_++, bound)); }
  template <typename Values>
  auto one_of(const Values& values) {
    return values[below(values.size())];
  }

 private:
  Random random_;
  std::uint64_t next_ = 0;
};

// 1, all rows, a few, anything between, and sometimes more than there are.
std::size_t choose_k(Choices& choices, std::size_t rows) {
  switch (choices.below(8)) {
    case 0:
    case 1: return 1;
    case 2: return rows;
    case 3: return rows + 1 + choices.below(4);
    case 4:
    case 5: return std::min<std::size_t>(rows, 10);
    default: return 1 + choices.below(rows);
  }
}

class KnnGenerated : public testing::TestWithParam<Metric> {};

INSTANTIATE_TEST_SUITE_P(Metric, KnnGenerated, testing::ValuesIn(support::every_metric),
                         support::metric_name);

TEST_P(KnnGenerated, EveryTailOfDimensionAndRows) {
  constexpr std::array kinds = {Kind::normal, Kind::integers, Kind::exact_duplicates, Kind::near_duplicates};
  CaseRunner runner;
  std::uint64_t seed = 1000 * static_cast<std::uint64_t>(GetParam());
  for (const std::size_t dim : tails)
    for (const std::size_t rows : tails) {
      Choices choices(++seed);
      KnnCase knn_case{.metric = GetParam()};
      knn_case.recipe = {.kind = choices.one_of(kinds),
                         .rows = rows,
                         .queries = choices.one_of(tails),
                         .dim = dim,
                         .base_type = choices.one_of(support::every_type),
                         .query_type = choices.one_of(support::every_type),
                         .base_layout = choices.one_of(layouts),
                         .query_layout = choices.one_of(layouts),
                         .seed = seed};
      knn_case.k = choose_k(choices, rows);
      if (!runner.run(knn_case)) return;
    }
}

// Same types on both sides, the usual case and the one with kernels of its own: every tail of both extents.
TEST_P(KnnGenerated, EveryTailOfQueriesForEveryType) {
  CaseRunner runner;
  std::uint64_t seed = 10'000 + 1000 * static_cast<std::uint64_t>(GetParam());
  for (const ElementType type : support::every_type)
    for (const std::size_t queries : tails) {
      Choices choices(++seed);
      KnnCase knn_case{.metric = GetParam()};
      knn_case.recipe = {.kind = Kind::normal,
                         .rows = 100 + choices.below(200),
                         .queries = queries,
                         .dim = choices.one_of(tails),
                         .base_type = type,
                         .query_type = type,
                         .base_layout = choices.one_of(layouts),
                         .query_layout = choices.one_of(layouts),
                         .seed = seed};
      knn_case.k = choose_k(choices, knn_case.recipe.rows);
      if (!runner.run(knn_case)) return;
    }
}

TEST_P(KnnGenerated, EveryKindOfDataForEveryPairOfTypes) {
  constexpr std::array<std::size_t, 8> dims = {1, 2, 8, 17, 33, 64, 100, 128};
  CaseRunner runner;
  std::uint64_t seed = 20'000 + 1000 * static_cast<std::uint64_t>(GetParam());
  for (const Kind kind : support::every_kind)
    for (const ElementType base_type : support::every_type)
      for (const ElementType query_type : support::every_type) {
        Choices choices(++seed);
        KnnCase knn_case{.metric = GetParam()};
        knn_case.recipe = {.kind = kind,
                           .rows = 64 + choices.below(300),
                           .queries = 1 + choices.below(24),
                           .dim = choices.one_of(dims),
                           .base_type = base_type,
                           .query_type = query_type,
                           .base_layout = choices.one_of(layouts),
                           .query_layout = choices.one_of(layouts),
                           .seed = seed};
        knn_case.k = choose_k(choices, knn_case.recipe.rows);
        if (!runner.run(knn_case)) return;
      }
}

// Forcing an instruction set must force it; otherwise every other test of this file runs one of them only.
TEST(KnnInstructionSets, AreForced) {
  ASSERT_FALSE(instruction_sets().empty());
  for (const std::string& isa : instruction_sets()) EXPECT_EQ(Context::cpu({.isa = isa}).isa(), isa);
}

}  // namespace
}  // namespace nearwise
