// Inverted files against their definition, and what must not change an answer.
#include "nearwise/ivf.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <type_traits>
#include <vector>

#include "oracle/lists.h"
#include "support/error_of.h"
#include "support/ivf_cases.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::as_expected;
using support::clustered;
using support::error_of;
using support::expected_answer;
using support::Kind;
using support::one_thread;
using support::Problem;
using support::same;

// Codes by the quantizer, which has tests of its own, and rows of codes by the oracle.
support::DecodeLeft decoder_of(const Ivf& index, const ProductQuantizer& quantizer) {
  std::vector<std::size_t> begins;
  for (std::size_t part = 0; part <= quantizer.parts(); ++part) begins.push_back(quantizer.part_begin(part));
  return [&index, &quantizer, begins](std::size_t list, const Matrix<float>& left) {
    const Matrix<std::uint8_t> code = quantizer.encode(one_thread(), left);
    return oracle::decode_product(index.centroids().row(list), begins, quantizer.codebooks(),
                                  quantizer.bits(), code.row(0));
  };
}

// A base class would be copied without what a derived one adds.
static_assert(std::is_final_v<Ivf>);

class IvfMetrics : public testing::TestWithParam<Metric> {};
INSTANTIATE_TEST_SUITE_P(Metric, IvfMetrics, testing::ValuesIn(support::every_metric), support::metric_name);

TEST_P(IvfMetrics, FlatIsItsDefinition) {
  for (const ElementType type : support::every_type) {
    const Problem problem = clustered(600, 40, 21, 10, type);
    Ivf index = Ivf::train(one_thread(), problem.base, {.metric = GetParam(), .lists = 12});
    index.add(one_thread(), problem.base);
    for (const std::size_t probes : {1UL, 5UL}) {
      const oracle::Answer expected = expected_answer(index, {}, problem.base, problem.queries, 9, probes, 0);
      for (const Context& context : support::every_instruction_set())
        EXPECT_TRUE(same(expected, index.search(context, problem.queries, 9, {.probes = probes})))
            << name(type) << " " << context.isa();
    }
  }
}

TEST_P(IvfMetrics, FlatThatProbesEverythingIsExact) {
  const Problem problem = clustered(500, 30, 16, 11);
  Ivf index = Ivf::train(one_thread(), problem.base, {.metric = GetParam(), .lists = 8});
  index.add(one_thread(), problem.base);
  EXPECT_TRUE(same(oracle::knn(problem.queries, problem.base, 25, GetParam()),
                   index.search(one_thread(), problem.queries, 25, {.probes = 8})));
}

TEST_P(IvfMetrics, ProductCodesAreTheirDefinition) {
  for (const unsigned bits : {4U, 8U}) {
    const Problem problem = clustered(700, 40, 20, 12);
    Ivf index = Ivf::train(one_thread(), problem.base,
                           {.metric = GetParam(), .lists = 7, .encoding = Pq{.code_bytes = 5, .bits = bits}});
    index.add(one_thread(), problem.base);
    EXPECT_EQ(index.code_bytes(), 5U);
    for (const std::size_t candidates : {0UL, 30UL}) {
      const oracle::Answer expected = expected_answer(index, decoder_of(index, *index.quantizer()),
                                                      problem.base, problem.queries, 6, 3, candidates);
      IvfSearchOptions options = {.probes = 3, .codes_only = candidates == 0};
      if (candidates != 0) options.candidates = candidates;
      for (const Context& context : support::every_instruction_set())
        EXPECT_TRUE(same(expected, index.search(context, problem.queries, 6, options)))
            << bits << " bits, " << candidates << " candidates, " << context.isa();
      if (candidates == 0) continue;
      // Vectors that the caller gives are as good as those of the index.
      options.rerank = problem.base;
      EXPECT_TRUE(same(expected, index.search(one_thread(), problem.queries, 6, options))) << bits << " bits";
    }
  }
}

// Would catch: an answer that depends on the batch, on threads or on the memory limit.
TEST(Ivf, AnswersDependOnNothingElse) {
  const Problem problem = clustered(3000, 300, 24, 13);
  Ivf index = Ivf::train(one_thread(), problem.base, {.lists = 20, .encoding = Pq{.code_bytes = 6}});
  index.add(one_thread(), problem.base);
  const RowsView queries = problem.queries;
  const IvfSearchOptions options = {.probes = 4, .rerank = problem.base, .candidates = 40};
  const oracle::Answer whole = as_expected(index.search(one_thread(), queries, 10, options));
  for (std::size_t query = 0; query < queries.rows(); query += 37) {
    const Neighbors alone = index.search(one_thread(), queries.slice(query, 1), 10, options);
    for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(alone.ids(0, i), whole.ids[query * 10 + i]);
  }
  for (const int threads : {2, 5})
    EXPECT_TRUE(same(whole, index.search(Context::cpu({.threads = threads}), queries, 10, options)));
  const Error refused =
      error_of([&] { index.search(Context::cpu({.threads = 1, .memory_limit = 1}), queries, 10, options); });
  EXPECT_EQ(refused.code(), ErrorCode::out_of_memory);
  const Context small = Context::cpu({.threads = 1, .memory_limit = 3 << 20});
  EXPECT_TRUE(same(whole, index.search(small, queries, 10, options)));
  EXPECT_LE(small.memory_peak(), std::uint64_t{3} << 20);
}

TEST(Ivf, RowsInBatchesAreRowsAtOnce) {
  const Problem problem = clustered(1000, 50, 12, 14);
  const RowsView base = problem.base;
  Ivf whole = Ivf::train(one_thread(), base, {.lists = 10, .encoding = Pq{.code_bytes = 4}});
  Ivf parts = whole.empty_copy();
  whole.add(one_thread(), base);
  for (std::size_t first = 0; first < 1000; first += 77)
    parts.add(one_thread(), base.slice(first, std::min<std::size_t>(77, 1000 - first)));
  EXPECT_EQ(parts.size(), 1000U);
  EXPECT_TRUE(same(as_expected(whole.search(one_thread(), problem.queries, 20, {.probes = 3})),
                   parts.search(one_thread(), problem.queries, 20, {.probes = 3})));
}

TEST(Ivf, MergedPartsAreTheWhole) {
  const Problem problem = clustered(900, 50, 12, 15);
  const RowsView base = problem.base;
  Ivf whole = Ivf::train(one_thread(), base, {.lists = 9});
  Ivf left = whole.empty_copy();
  Ivf right = whole.empty_copy();
  whole.add(one_thread(), base);
  left.add(one_thread(), base.slice(0, 400));
  std::vector<Id> ids;
  for (Id id = 400; id < 900; ++id) ids.push_back(id);
  right.add(one_thread(), base.slice(400, 500), ids);
  left.merge(one_thread(), right);
  EXPECT_TRUE(same(as_expected(whole.search(one_thread(), problem.queries, 15, {.probes = 4})),
                   left.search(one_thread(), problem.queries, 15, {.probes = 4})));
  const Ivf other = Ivf::train(one_thread(), base, {.lists = 8});
  EXPECT_EQ(error_of([&] { left.merge(one_thread(), other); }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([&] { left.merge(one_thread(), left); }).code(), ErrorCode::invalid_argument);
}

TEST(Ivf, RemovedRowsAreGone) {
  const Problem problem = clustered(800, 40, 10, 16);
  const RowsView base = problem.base;
  Ivf index = Ivf::train(one_thread(), base, {.lists = 8, .encoding = Pq{.code_bytes = 5}});
  Ivf rest = index.empty_copy();
  index.add(one_thread(), base);
  std::vector<Id> gone;
  for (Id id = 0; id < 800; ++id) {
    if (id % 3 == 0)
      gone.push_back(id);
    else
      rest.add(one_thread(), base.slice(static_cast<std::size_t>(id), 1), std::array{id});
  }
  gone.push_back(5000);  // nobody's
  EXPECT_EQ(index.remove(one_thread(), gone), 267U);
  EXPECT_EQ(index.remove(one_thread(), gone), 0U);
  EXPECT_EQ(index.size(), 533U);
  EXPECT_TRUE(same(as_expected(rest.search(one_thread(), problem.queries, 12, {.probes = 4})),
                   index.search(one_thread(), problem.queries, 12, {.probes = 4})));
}

TEST(Ivf, IdsOfTheCaller) {
  const Problem problem = clustered(300, 20, 8, 17);
  const RowsView base = problem.base;
  Ivf index = Ivf::train(one_thread(), base, {.lists = 4});
  std::vector<Id> ids;
  for (Id row = 0; row < 300; ++row) ids.push_back((Id{1} << 50) - 7 * row);
  index.add(one_thread(), base, ids);
  const Neighbors found = index.search(one_thread(), problem.queries, 300, {.probes = 4});
  const oracle::Answer exact = oracle::knn(problem.queries, base, 300, Metric::sqeuclidean);
  for (std::size_t query = 0; query < 20; ++query)
    for (std::size_t i = 1; i < 300; ++i) {
      EXPECT_EQ(found.distances(query, i), exact.distances[query * 300 + i]);
      // Ties by id.
      if (found.distances(query, i) == found.distances(query, i - 1)) {
        EXPECT_LT(found.ids(query, i - 1), found.ids(query, i));
      }
    }
  index.add(one_thread(), base.slice(0, 1));
  const Neighbors all = index.search(one_thread(), base.slice(0, 1), 301, {.probes = 4});
  EXPECT_EQ(std::ranges::max(all.ids.row(0)), (Id{1} << 50) + 1);
}

TEST(Ivf, ShortAnswersArePadded) {
  const Problem problem = clustered(100, 10, 6, 18);
  Ivf index =
      Ivf::train(one_thread(), problem.base, {.lists = 3, .encoding = Pq{.code_bytes = 2, .bits = 4}});
  const Neighbors none = index.search(one_thread(), problem.queries, 3);
  EXPECT_EQ(none.ids(9, 0), no_id);
  EXPECT_EQ(none.distances(9, 2), std::numeric_limits<float>::infinity());
  index.add(one_thread(), RowsView(problem.base).slice(0, 2));
  const Neighbors two = index.search(one_thread(), problem.queries, 3, {.probes = 3});
  EXPECT_NE(two.ids(0, 1), no_id);
  EXPECT_EQ(two.ids(0, 2), no_id);
  EXPECT_EQ(index.search(one_thread(), RowsView(problem.queries).slice(0, 0), 3).ids.rows(), 0U);
}

TEST(Ivf, WrongArgumentsAreNamed) {
  const Problem problem = clustered(300, 10, 8, 19);
  const RowsView base = problem.base;
  const RowsView queries = problem.queries;
  Ivf index = Ivf::train(one_thread(), base, {.lists = 4, .encoding = Pq{.code_bytes = 2}});
  index.add(one_thread(), base);
  const auto refuses = [&](const auto& call, const std::string& text) {
    const Error error = error_of(call);
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  };
  const Problem other = clustered(10, 5, 7, 20);
  refuses([&] { index.add(one_thread(), other.base); }, "dimension");
  refuses([&] { index.add(one_thread(), base, std::array<Id, 2>{1, 2}); }, "one id per row");
  refuses([&] { index.add(one_thread(), base.slice(0, 1), std::array<Id, 1>{-3}); }, "ids must be 0 to");
  refuses([&] { index.search(one_thread(), queries, 0); }, "k must be at least 1");
  refuses([&] { index.search(one_thread(), queries, 1, {.probes = 5}); }, "probes must be 1 to 4, got 5");
  refuses([&] { index.search(one_thread(), queries, 5, {.rerank = base, .candidates = 4}); },
          "at least k = 5");
  refuses([&] { index.search(one_thread(), queries, 5, {.rerank = base.slice(0, 299)}); },
          "a row for every id");
  refuses([&] { index.set_probes(0); }, "1 to 4");
  refuses([&] { Ivf::train(one_thread(), base, {.lists = 301, .encoding = Pq{}}); },
          "lists must be 1 to 300");
  refuses([&] { Ivf::train(one_thread(), base, {.encoding = Pq{.code_bytes = 9}}); },
          "code_bytes must be 1 to 8");
  refuses([&] { Ivf::train(one_thread(), base, {.encoding = Pq{.bits = 5}}); }, "bits must be 4 or 8");
  Ivf flat = Ivf::train(one_thread(), base, {.lists = 4});
  const Problem bytes = clustered(10, 5, 8, 21, ElementType::u8);
  refuses([&] { flat.add(one_thread(), bytes.base); }, "the element type of the training, f32, got u8");
}

TEST(Ivf, RowsThatAreNoNumbersAreNamedAndNothingIsAdded) {
  support::Values values = support::generate(Kind::normal, 50, 6, 22);
  const support::Rows good(values, ElementType::f32);
  values(33, 2) = std::numeric_limits<double>::infinity();
  const support::Rows bad(values, ElementType::f32);
  Ivf index = Ivf::train(one_thread(), good, {.lists = 3});
  const Error error = error_of([&] { index.add(one_thread(), bad); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_NE(std::string(error.what()).find("33"), std::string::npos) << error.what();
  EXPECT_EQ(index.size(), 0U);
  // By the caller's number, also where training draws some of the rows, and the bad one is perhaps not among
  // them.
  for (const std::size_t training_rows : {200UL, 15UL}) {
    const Error refused =
        error_of([&] { Ivf::train(one_thread(), bad, {.lists = 3, .training_rows = training_rows}); });
    EXPECT_EQ(refused.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(refused.what()).find("row 33"), std::string::npos) << refused.what();
  }
}

TEST(Ivf, IdsEndBelowTheLargestNumber) {
  const Problem problem = clustered(300, 10, 8, 25);
  const RowsView base = problem.base;
  Ivf index = Ivf::train(one_thread(), base, {.lists = 2});
  constexpr Id most = std::numeric_limits<Id>::max();
  index.add(one_thread(), base.slice(0, 1), std::array<Id, 1>{most - 2});
  const auto refused = [&](const auto& call) {
    EXPECT_EQ(error_of(call).code(), ErrorCode::invalid_argument);
    EXPECT_EQ(index.size(), 1U);
  };
  refused([&] { index.add(one_thread(), base.slice(1, 1), std::array<Id, 1>{most}); });
  refused([&] { index.add(one_thread(), base.slice(1, 2)); });
  index.add(one_thread(), base.slice(1, 1));  // the last number there is
  const Neighbors found = index.search(one_thread(), base.slice(1, 1), 2, {.probes = 2});
  EXPECT_EQ(std::ranges::max(found.ids.row(0)), most - 1);
}

TEST(IvfThread, SearchesMayRunAtOnce) {
  const Problem problem = clustered(600, 60, 12, 23);
  Ivf index =
      Ivf::train(one_thread(), problem.base, {.lists = 10, .encoding = Pq{.code_bytes = 3, .bits = 4}});
  index.add(one_thread(), problem.base);
  const Context shared = Context::cpu({.threads = 3});
  // Nobody has searched before: what an index keeps between searches is made here.
  std::array<Neighbors, 3> found;
  std::vector<std::thread> threads;
  for (Neighbors& own : found)
    threads.emplace_back([&] { own = index.search(shared, problem.queries, 8, {.probes = 4}); });
  for (std::thread& thread : threads) thread.join();
  const oracle::Answer expected = as_expected(index.search(one_thread(), problem.queries, 8, {.probes = 4}));
  for (const Neighbors& own : found) EXPECT_TRUE(same(expected, own));
}

TEST(Ivf, TheSeedDecides) {
  const Problem problem = clustered(2000, 10, 10, 24);
  const auto centroids = [&](int threads, std::uint64_t seed) {
    const Ivf index = Ivf::train(Context::cpu({.threads = threads, .seed = seed}), problem.base,
                                 {.lists = 6, .training_rows = 300});
    return std::vector<float>(index.centroids().data(), index.centroids().data() + 60);
  };
  EXPECT_EQ(centroids(1, 3), centroids(4, 3));
  EXPECT_NE(centroids(1, 3), centroids(1, 4));
}

}  // namespace
}  // namespace nearwise
