// Exact search on data made to fool it: every attack of support/attacks.h, byte_attacks.h and
// scale_attacks.h, every kind of support/problems.h, under every metric, in several dimensions, element types
// and k; ids and the bits of distances at every instruction set, for a single query and for many.
//
// What these would catch: an error bound of bf16 or int8 products that is too small, or holds only on
// average; one that is taken over the wrong rows; tiles that take denormals for zero; sums that overflow 16
// or 32 bits; lists of candidates that overflow; tails of tiles that are cut or filled with garbage.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "nearwise/exact.h"
#include "support/attacks.h"
#include "support/byte_attacks.h"
#include "support/careless.h"
#include "support/knn_cases.h"
#include "support/scale_attacks.h"

namespace nearwise {
namespace {

using support::Careless;
using support::Numbers;
using support::Rows;
using support::Shape;
namespace attacks = support::attacks;

using Types = std::pair<ElementType, ElementType>;  // base, queries
constexpr ElementType f32 = ElementType::f32;
constexpr ElementType f16 = ElementType::f16;
constexpr ElementType bf16 = ElementType::bf16;
constexpr ElementType u8 = ElementType::u8;
constexpr ElementType i8 = ElementType::i8;

struct Attack {
  const char* name;
  Numbers (*make)(const Shape&);
  // Searches that are wrong on it at k = 10, and under which metric; there is a test that they are.
  std::vector<Careless> fools = {};
  Metric metric = Metric::sqeuclidean;
  std::vector<Types> types = {{f32, f32}, {f32, f32}, {f32, bf16}, {bf16, f32}, {f16, f16}, {bf16, bf16}};
};
void PrintTo(const Attack& attack, std::ostream* out) { *out << attack.name; }

constexpr auto product_f32 = Careless::product_f32;
constexpr auto bf16_rerank = Careless::bf16_rerank;
constexpr auto int8_rerank = Careless::int8_rerank;
const std::vector<Careless> everyone = {product_f32, bf16_rerank, int8_rerank};

const std::vector<Attack>& every_attack() {
  static const std::vector<Attack> list = {
      {"halfway", attacks::halfway},
      {"halfway_to_one", attacks::halfway_to_one, everyone},
      {"halfway_signed", attacks::halfway_signed},
      {"colliding_8", attacks::colliding<8>, everyone},
      {"colliding_16", attacks::colliding<16>, everyone},
      {"correlated_residuals_8", attacks::correlated_residuals<8>, {bf16_rerank, int8_rerank}},
      {"correlated_residuals_16", attacks::correlated_residuals<16>, everyone},
      {"residuals_towards_the_query", attacks::residuals_towards_the_query, {bf16_rerank, int8_rerank}},
      {"residuals_along_the_query", attacks::residuals_along_the_query, {bf16_rerank}, Metric::inner_product},
      {"residual_in_the_query", attacks::residual_in_the_query, {bf16_rerank}, Metric::inner_product},
      {"clusters_2_8", attacks::tight_clusters<8>, everyone},
      {"clusters_2_9", attacks::tight_clusters<9>, everyone},
      {"clusters_2_16", attacks::tight_clusters<16>, everyone},
      {"clusters_2_24", attacks::tight_clusters<24>, everyone},
      {"narrow_cone", attacks::narrow_cone, everyone},
      {"outlier_row_2_10", attacks::outlier_row<10>, {int8_rerank}},
      {"outlier_row_2_60", attacks::outlier_row<60>, {int8_rerank}},
      {"outlier_column", attacks::outlier_column, everyone},
      {"outlier_queries", attacks::outlier_queries, {product_f32, int8_rerank}},
      {"mixed_blocks", attacks::mixed_blocks, everyone},
      {"halfway_to_one_integer", attacks::halfway_to_one_integer, {product_f32, int8_rerank}},
      {"ladder_of_rows", attacks::ladder_of_rows, {int8_rerank}},
      {"ladder_of_columns", attacks::ladder_of_columns},
      {"offset_with_ties", attacks::offset_with_ties, everyone},
      {"offset_columns", attacks::offset_columns, everyone},
      {"two_offsets", attacks::two_offsets, everyone},
      {"far_queries", attacks::far_queries, {product_f32, int8_rerank}},
      {"bf16_denormals", attacks::bf16_denormals},
      {"smallest_steps", attacks::smallest_steps},
      {"denormal_against_huge",
       attacks::denormal_against_huge,
       {bf16_rerank, int8_rerank},
       Metric::inner_product},
      {"half_denormal", attacks::half_denormal, {bf16_rerank, int8_rerank}, Metric::inner_product},
      {"products_that_flush", attacks::products_that_flush, {}, Metric::inner_product},
      {"cancelling_pairs", attacks::cancelling_pairs, everyone, Metric::inner_product},
      {"last_bits", attacks::last_bits, everyone},
      {"rotations", attacks::rotations, {product_f32}},
      {"signs", attacks::signs},
      {"unit_rows_seen_from_the_origin", attacks::unit_rows_seen_from_the_origin, everyone},
      {"duplicate_blocks", attacks::duplicate_blocks},
      {"worst_to_best", attacks::worst_to_best},
      {"dominating_row", attacks::dominating_row, {int8_rerank}},
      {"last_element_only", attacks::last_element_only, {product_f32, int8_rerank}},
      {"winners_at_edges", attacks::winners_at_edges},
      {"half_steps", attacks::half_steps},
      {"equal_when_rounded", attacks::equal_when_rounded, {int8_rerank}},
      {"outlier_element_2_7", attacks::outlier_element<7>, {int8_rerank}},
      {"outlier_element_2_12", attacks::outlier_element<12>, {bf16_rerank, int8_rerank}},
      {"every_scale", attacks::every_scale, {int8_rerank}},
      {"scales_2_40", attacks::scales_between<-40, 40>, {int8_rerank}},
      {"scales_denormal", attacks::scales_between<-148, -96>, {}, Metric::inner_product},
      {"errors_decide", attacks::errors_decide, {int8_rerank}},
      {"opposite_offsets", attacks::opposite_offsets, {bf16_rerank, int8_rerank}},
      {"integers_as_floats", attacks::integers_as_floats},
      {"half_integers", attacks::half_integers},
      {"u8_extremes", attacks::u8_extremes, {}, Metric::sqeuclidean, {{u8, u8}}},
      {"i8_extremes", attacks::i8_extremes, {}, Metric::sqeuclidean, {{i8, i8}}},
      {"u8_against_i8_extremes", attacks::u8_against_i8_extremes, {}, Metric::sqeuclidean, {{u8, i8}}},
      {"all_255", attacks::all_largest<255>, {int8_rerank}, Metric::sqeuclidean, {{u8, u8}}},
      {"all_127", attacks::all_largest<127>, {}, Metric::sqeuclidean, {{i8, i8}, {u8, i8}, {i8, u8}}},
      {"all_minus_128", attacks::all_largest<-128>, {}, Metric::sqeuclidean, {{i8, i8}}},
      {"u8_middle", attacks::u8_middle, {}, Metric::sqeuclidean, {{u8, u8}, {u8, f32}}},
      {"sparse_bytes", attacks::sparse_bytes, {}, Metric::sqeuclidean, {{u8, u8}, {i8, i8}, {i8, u8}}},
      {"bytes_against_halves",
       attacks::bytes_against_halves,
       {},
       Metric::sqeuclidean,
       {{u8, f32}, {i8, f16}, {u8, bf16}}},
  };
  return list;
}

constexpr std::array<std::size_t, 15> dims = {1,   2,   31,  32,  33,  63,  64,  65,
                                              127, 128, 129, 300, 384, 768, 1536};
constexpr std::array<std::size_t, 4> every_k = {10, 100, 1, 1000};

// One data set: numbers in two element types, searched under one metric for one k.
struct Set {
  Shape shape;
  Types types;
  Metric metric;
  std::size_t k;
};

// The `number`-th set: all dims, types and k come in turn. The longer the rows, the fewer, so that no set
// takes long; there are always several tiles of 16 and of 64, and a rest.
Set set_of(std::size_t number, const std::vector<Types>& types, Metric metric) {
  const std::size_t k = every_k[number / dims.size() % every_k.size()];
  std::size_t dim = dims[number % dims.size()];
  if (k == 1000 && dim > 200) dim /= 4;
  const std::size_t rows = k == 1000 ? 1307 : dim > 500 ? 717 : 1003;
  return {{.rows = rows, .queries = support::few_and_many.back(), .dim = dim, .seed = 900'000 + number},
          types[number / dims.size() % types.size()],
          metric,
          k};
}

std::string describe(const Set& set) {
  return fmt::format("{} [{}, {}] {} against [{}, {}] {}, k {}, seed {}", name(set.metric), set.shape.queries,
                     set.shape.dim, name(set.types.second), set.shape.rows, set.shape.dim,
                     name(set.types.first), set.k, set.shape.seed);
}

oracle::Answer first_query(const oracle::Answer& answer) {
  const auto count = static_cast<std::ptrdiff_t>(answer.k);
  return {1,
          answer.k,
          {answer.ids.begin(), answer.ids.begin() + count},
          {answer.distances.begin(), answer.distances.begin() + count}};
}

// Runs sets and counts them.
class SetRunner {
 public:
  SetRunner() = default;
  ~SetRunner() { testing::Test::RecordProperty("adversarial_sets", count_); }
  SetRunner(const SetRunner&) = delete;
  SetRunner& operator=(const SetRunner&) = delete;

  void run(RowsView queries, RowsView base, Metric metric, std::size_t k) {
    ++count_;
    const oracle::Answer expected = oracle::knn(queries, base, k, metric);
    for (const Context& context : support::every_instruction_set()) {
      EXPECT_TRUE(support::same(expected, knn(context, queries, base, k, {.metric = metric})))
          << "at " << context.isa();
      EXPECT_TRUE(support::same(first_query(expected),
                                knn(context, queries.slice(0, 1), base, k, {.metric = metric})))
          << "a single query at " << context.isa();
      // Screened by 8-bit integers, for which knn() finds so few rows too few.
      EXPECT_TRUE(support::same(
          expected, Exact::prepare(context, base, {.metric = metric}).search(context, queries, k)))
          << "prepared, at " << context.isa();
    }
  }

  void run(const Set& set, Numbers (*make)(const Shape&)) {
    SCOPED_TRACE(describe(set));
    const Numbers numbers = make(set.shape);
    run(Rows(numbers.queries, set.types.second), Rows(numbers.base, set.types.first), set.metric, set.k);
  }

 private:
  int count_ = 0;
};

std::string name_of(const testing::TestParamInfo<Attack>& instance) { return instance.param.name; }

class KnnAdversarial : public testing::TestWithParam<Attack> {
 protected:
  std::size_t place() const {
    std::size_t index = 0;
    while (std::string(every_attack()[index].name) != GetParam().name) ++index;
    return index;
  }
};

INSTANTIATE_TEST_SUITE_P(Attack, KnnAdversarial, testing::ValuesIn(every_attack()), name_of);

TEST_P(KnnAdversarial, IdenticalToTheOracle) {
  constexpr std::size_t sets_of_one_metric = 2;
  SetRunner runner;
  // 7 sets on from one attack to the next, so that the dims and k of each attack are others.
  std::size_t number = 7 * place();
  for (std::size_t i = 0; i < sets_of_one_metric; ++i)
    for (const Metric metric : support::every_metric) {
      runner.run(set_of(number, GetParam().types, metric), GetParam().make);
      number += 1 + dims.size();
    }
}

std::vector<Attack> attacks_with_teeth() {
  std::vector<Attack> list;
  for (const Attack& attack : every_attack())
    if (!attack.fools.empty()) list.push_back(attack);
  return list;
}

class KnnAdversarialTeeth : public testing::TestWithParam<Attack> {};

INSTANTIATE_TEST_SUITE_P(Attack, KnnAdversarialTeeth, testing::ValuesIn(attacks_with_teeth()), name_of);

// The searches that an attack claims to fool, fooled; and the library, not fooled, on the very same set.
TEST_P(KnnAdversarialTeeth, CarelessSearchesAreWrong) {
  constexpr std::size_t k = 10;
  const Attack& attack = GetParam();
  const Numbers numbers = attack.make({.rows = 1003, .queries = 40, .dim = 128, .seed = 1});
  const Rows queries(numbers.queries, attack.types.front().second);
  const Rows base(numbers.base, attack.types.front().first);
  const oracle::Answer expected = oracle::knn(queries, base, k, attack.metric);
  for (const Careless search : attack.fools)
    EXPECT_NE(support::careless_ids(search, queries, base, k, attack.metric), expected.ids)
        << name(search) << " is right: the data shows nothing";
  SetRunner().run(queries, base, attack.metric, k);
}

// The ordinary hostile data at sizes of several tiles, as floats and as bytes.
class KnnAdversarialKinds : public testing::TestWithParam<support::Kind> {};

INSTANTIATE_TEST_SUITE_P(Kind, KnnAdversarialKinds, testing::ValuesIn(support::every_kind),
                         [](const auto& instance) { return std::string(support::name(instance.param)); });

TEST_P(KnnAdversarialKinds, IdenticalToTheOracle) {
  const std::vector<Types> types = {{f32, f32}, {u8, u8}, {bf16, bf16}, {i8, i8}, {f32, f32}};
  SetRunner runner;
  std::size_t number = 11 * static_cast<std::size_t>(GetParam());
  for (const Metric metric : support::every_metric) {
    const Set set = set_of(number, types, metric);
    SCOPED_TRACE(describe(set));
    const support::Problem problem = support::make_problem({.kind = GetParam(),
                                                            .rows = set.shape.rows,
                                                            .queries = set.shape.queries,
                                                            .dim = set.shape.dim,
                                                            .base_type = set.types.first,
                                                            .query_type = set.types.second,
                                                            .seed = set.shape.seed});
    runner.run(problem.queries, problem.base, set.metric, set.k);
    number += 1 + dims.size();
  }
}

// Rows so long that the sum of their products exceeds 31 bits (and that of 16-bit halves much earlier). Few
// of them: the oracle takes its time.
TEST(KnnAdversarialBytes, SumsBeyond31Bits) {
  constexpr std::size_t dim = 40'000;
  static_assert(255 * 255 * dim > std::size_t{1} << 31);
  struct Bytes {
    Types types;
    Numbers (*make)(const Shape&);
  };
  constexpr Bytes every_set[] = {{{u8, u8}, attacks::all_largest<255>},
                                 {{u8, u8}, attacks::u8_extremes},
                                 {{i8, i8}, attacks::all_largest<-128>},
                                 {{u8, i8}, attacks::u8_against_i8_extremes}};
  SetRunner runner;
  for (const Bytes& bytes : every_set)
    for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product})
      runner.run({{.rows = 40, .queries = 18, .dim = dim, .seed = 3}, bytes.types, metric, 10}, bytes.make);
}

// The largest sums at lengths around powers of two, where a search by integers may give up and go another
// way.
TEST(KnnAdversarialBytes, LengthsWhereIntegersGiveUp) {
  SetRunner runner;
  for (const std::size_t dim : {8191UL, 8193UL, 16'383UL, 16'384UL, 16'385UL, 32'769UL}) {
    const Shape shape = {.rows = 40, .queries = 20, .dim = dim, .seed = dim};
    runner.run({shape, {u8, u8}, Metric::sqeuclidean, 10}, attacks::all_largest<255>);
    runner.run({shape, {i8, i8}, Metric::inner_product, 10}, attacks::i8_extremes);
  }
}

}  // namespace
}  // namespace nearwise
