// The graph of nearest neighbours, by self join and by search, against the oracle: ids and the bits of
// distances at every instruction set.
//
// What these would catch: a row that is its own neighbour, or a duplicate that is taken for the row itself; a
// pair that serves one of its rows only, or one row twice; groups that never meet; empty places of the last
// panel among the neighbours; a threshold of the exchanged roles that is too tight.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "nearwise/error.h"
#include "nearwise/exact.h"
#include "oracle/graph.h"
#include "support/attacks.h"
#include "support/byte_attacks.h"
#include "support/cancelling.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::every_instruction_set;
using support::Kind;
using support::Layout;
using support::Rows;
using support::same;

KnnOptions excluding(KnnOptions options) {
  options.exclude_self = true;
  return options;
}

void expect_graph(RowsView rows, std::size_t k, const KnnOptions& options) {
  const oracle::Answer expected = oracle::knn_graph(rows, k, options.metric);
  for (const Context& context : every_instruction_set()) {
    EXPECT_TRUE(same(expected, exact_knn_graph(context, rows, k, options))) << "graph at " << context.isa();
    EXPECT_TRUE(same(expected, knn(context, rows, rows, k, excluding(options))))
        << "knn at " << context.isa();
    EXPECT_EQ(context.memory_used(), 0U);
  }
}

class KnnGraph : public testing::TestWithParam<Metric> {};

INSTANTIATE_TEST_SUITE_P(Metric, KnnGraph, testing::ValuesIn(support::every_metric), support::metric_name);

// Also where the self join declines (huge values) and where lists are full of what cannot be told apart
// (duplicates).
TEST_P(KnnGraph, EveryKindOfDataForEveryType) {
  constexpr std::array layouts = {Layout::dense, Layout::padded, Layout::unaligned};
  constexpr std::array<std::size_t, 6> dims = {1, 7, 16, 33, 64, 100};
  std::uint64_t seed = 5000 + 100 * static_cast<std::uint64_t>(GetParam());
  for (const Kind kind : support::every_kind)
    for (const ElementType type : support::every_type) {
      ++seed;
      const std::size_t n = 60 + seed * 37 % 50;
      const std::size_t k = seed % 3 == 0 ? n - 1 : 1 + seed % 20;
      const std::size_t dim = dims[seed % dims.size()];
      SCOPED_TRACE(fmt::format("{} {} {} x {}, k {}, seed {}", name(kind), name(type), n, dim, k, seed));
      const double denormal = type == ElementType::f16 ? 1e-6 : 1e-40;
      const Rows rows(support::generate(kind, n, dim, seed, denormal), type, layouts[seed % layouts.size()]);
      expect_graph(rows, k, {.metric = GetParam()});
      if (HasFailure()) return;
    }
}

// Numbers of rows around a panel, a tile and a group; the edges of k; a few rows take the way of few queries.
TEST_P(KnnGraph, EveryResidueOfRows) {
  std::uint64_t seed = 6000;
  for (const std::size_t n : {2UL, 3UL, 5UL, 6UL, 15UL, 16UL, 17UL, 31UL, 32UL, 33UL, 63UL, 64UL, 65UL, 97UL})
    for (const ElementType type : {ElementType::f32, ElementType::u8, ElementType::i8})
      for (const std::size_t k : {std::size_t{1}, n / 2, n - 1}) {
        SCOPED_TRACE(fmt::format("{} rows of {}, k {}, seed {}", n, name(type), k, ++seed));
        const Rows rows(support::generate(Kind::exact_duplicates, n, 9, seed), type);
        expect_graph(rows, k, {.metric = GetParam()});
        if (HasFailure()) return;
      }
}

// Several groups, an odd number of them, and lists that fill up many times.
TEST_P(KnnGraph, SeveralGroups) {
  std::uint64_t seed = 7000;
  for (const std::size_t n : {500UL, 1000UL})
    for (const ElementType type : {ElementType::f32, ElementType::u8}) {
      const Kind kind = ++seed % 2 == 0 ? Kind::near_duplicates : Kind::exact_duplicates;
      SCOPED_TRACE(fmt::format("{} rows of {} {}", n, name(kind), name(type)));
      expect_graph(Rows(support::generate(kind, n, 12, seed), type), n == 500 ? 120 : 10,
                   {.metric = GetParam()});
    }
}

// More neighbours than other rows.
TEST_P(KnnGraph, ShortRowsArePadded) {
  for (const std::size_t n : {1UL, 2UL, 7UL, 40UL})
    for (const ElementType type : {ElementType::f32, ElementType::i8})
      for (const std::size_t k : {n, n + 1, n + 70}) {
        SCOPED_TRACE(fmt::format("{} rows of {}, k {}", n, name(type), k));
        expect_graph(Rows(support::generate(Kind::normal, n, 5, 7100 + n), type), k,
                     {.metric = GetParam(), .short_rows = ShortRows::pad});
      }
}

// Data on which roundings of a product in bf16 decide, or integers are at their largest.
TEST_P(KnnGraph, DataMadeToFoolIt) {
  using Make = support::Numbers (*)(const support::Shape&);
  namespace attacks = support::attacks;
  const auto run = [&](Make make, ElementType type, std::size_t dim) {
    const support::Numbers numbers = make({.rows = 200, .queries = 1, .dim = dim, .seed = 7200 + dim});
    expect_graph(Rows(numbers.base, type), 10, {.metric = GetParam()});
  };
  for (const Make make :
       {attacks::halfway_to_one, attacks::colliding<8>, attacks::correlated_residuals<16>,
        attacks::tight_clusters<9>, attacks::offset_with_ties, attacks::last_bits, attacks::mixed_blocks,
        attacks::outlier_row<60>, attacks::cancelling_pairs, attacks::bf16_denormals})
    run(make, ElementType::f32, 70);
  for (const std::size_t dim : {3UL, 130UL, 1030UL}) {
    run(attacks::u8_extremes, ElementType::u8, dim);
    run(attacks::i8_extremes, ElementType::i8, dim);
    run(attacks::all_largest<-128>, ElementType::i8, dim);
  }
}

// All rows are the same: each has the lowest other ids, and a row whose k + 1 best do not hold itself loses
// nothing.
TEST_P(KnnGraph, IdenticalRows) {
  for (const std::size_t n : {64UL, 333UL})
    expect_graph(Rows(support::generate(Kind::identical, n, 20, 7300), ElementType::f32), 30,
                 {.metric = GetParam()});
}

// Groups depend on the number of threads, answers do not.
TEST(KnnGraphThreads, AnyNumberOfThreadsGivesTheSameBytes) {
  std::uint64_t seed = 7400;
  for (const std::size_t n : {33UL, 500UL, 2049UL})
    for (const ElementType type : {ElementType::f32, ElementType::u8}) {
      const Metric metric = support::every_metric[++seed % 4];
      const Rows rows(support::generate(Kind::exact_duplicates, n, 8, seed), type);
      const oracle::Answer expected = oracle::knn_graph(rows, 10, metric);
      for (const int threads : {1, 2, 3, 4}) {
        const Context context = Context::cpu({.threads = threads});
        EXPECT_TRUE(same(expected, exact_knn_graph(context, rows, 10, {.metric = metric})))
            << threads << " threads, " << n << " rows of " << name(type) << ", " << name(metric);
        EXPECT_TRUE(same(expected, knn(context, rows, rows, 10, excluding({.metric = metric}))))
            << "knn, " << threads << " threads, " << n << " rows of " << name(type) << ", " << name(metric);
      }
    }
}

// From "too small for anything" over "no room for a self join" to plenty: the limit is kept, the answer is
// the same.
TEST(KnnGraphMemory, EveryLimitIsKept) {
  for (const ElementType type : {ElementType::f32, ElementType::u8}) {
    const Rows rows(support::generate(Kind::exact_duplicates, 400, 24, 7500), type);
    const oracle::Answer expected = oracle::knn_graph(rows, 20, Metric::sqeuclidean);
    for (const std::string& isa : instruction_sets())
      for (const int threads : {1, 3}) {
        int answered = 0;
        for (std::uint64_t limit = 120'000; limit < 2'000'000; limit += limit / 4) {
          SCOPED_TRACE(fmt::format("{} {}, {} threads, limit {}", name(type), isa, threads, limit));
          const Context context = Context::cpu({.threads = threads, .memory_limit = limit, .isa = isa});
          try {
            EXPECT_TRUE(same(expected, exact_knn_graph(context, rows, 20)));
            ++answered;
          } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::out_of_memory) << error.what();
            EXPECT_EQ(answered, 0) << "refused with more memory than was enough: " << error.what();
          }
          EXPECT_LE(context.memory_peak(), limit);
          EXPECT_EQ(context.memory_used(), 0U);
          if (HasFailure()) return;
        }
        EXPECT_GT(answered, 3) << isa;
      }
  }
}

TEST(KnnGraphCancel, StopsAtAnyReport) {
  const Rows rows(support::generate(Kind::normal, 3000, 16, 7600), ElementType::f32);
  for (const std::string& isa : instruction_sets())
    for (const int threads : {1, 2})
      for (const int when : {0, 1, 2})
        support::expect_cancelled_at_report(
            when, threads, isa, [&](const Context& context) { exact_knn_graph(context, rows, 5); });
  const Context cancelled = Context::cpu({.threads = 1});
  cancelled.cancel();
  const auto error = support::error_from([&] { exact_knn_graph(cancelled, rows, 5); });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), ErrorCode::cancelled);
}

// Would catch: work that is counted twice or by whole panels, so that more than everything is done.
TEST(KnnGraphProgress, NeverExceedsItsTotal) {
  for (const std::string& isa : instruction_sets())
    for (const std::size_t n : {2UL, 33UL, 500UL}) {
      const Rows rows(support::generate(Kind::normal, n, 8, 7700), ElementType::f32);
      std::uint64_t before = 0;
      std::uint64_t last_total = 0;
      int seconds = 0;
      const Context context = Context::cpu({.threads = 1,
                                            .isa = isa,
                                            .progress =
                                                [&](const Progress& progress) {
                                                  EXPECT_LE(progress.done, progress.total) << isa << " " << n;
                                                  EXPECT_GE(progress.done, before) << isa << " " << n;
                                                  before = progress.done;
                                                  last_total = progress.total;
                                                },
                                            .clock = [&] { return static_cast<double>(++seconds); }});
      exact_knn_graph(context, rows, 1);
      EXPECT_EQ(before, last_total) << isa << " " << n;
      EXPECT_GT(last_total, 0U) << isa << " " << n;
    }
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

TEST(KnnGraphErrors, AreRefusedInWords) {
  const Rows rows(support::generate(Kind::normal, 20, 5, 7800), ElementType::f32);
  expect_refused([&](const Context& context) { exact_knn_graph(context, rows, 20); },
                 "exact_knn_graph: k must be at most the number of other base rows, 19, got 20");
  expect_refused([&](const Context& context) { knn(context, rows, rows, 20, {.exclude_self = true}); },
                 "knn: k must be at most the number of other base rows, 19, got 20");
  expect_refused([&](const Context& context) { exact_knn_graph(context, rows, 0); },
                 "exact_knn_graph: k must be at least 1");
  expect_refused([&](const Context& context) { exact_knn_graph(context, rows.view().slice(0, 1), 1); },
                 "other base rows, 0, got 1");
  expect_refused([&](const Context& context) { exact_knn_graph(context, rows.view().slice(0, 0), 1); },
                 "other base rows, 0, got 1");
  expect_refused([&](const Context& context) { exact_knn_graph(context, RowsView(), 1); }, "dimension");
  for (const std::size_t queries : {0UL, 7UL, 19UL})
    expect_refused(
        [&](const Context& context) {
          knn(context, rows.view().slice(0, queries), rows, 3, {.exclude_self = true});
        },
        fmt::format("got {} and 20 rows", queries));
}

TEST(KnnGraphErrors, NoRowsHaveNoNeighbours) {
  const Rows rows(support::Values(0, 5), ElementType::f32);
  for (const Context& context : every_instruction_set()) {
    const Neighbors none = exact_knn_graph(context, rows, 3, {.short_rows = ShortRows::pad});
    EXPECT_EQ(none.ids.rows(), 0U);
    EXPECT_EQ(none.ids.cols(), 3U);
    EXPECT_EQ(none.distances.cols(), 3U);
  }
}

// Would catch: k + 1 or the bytes of lists that wrap around.
TEST(KnnGraphErrors, AnswerTooLargeForAnyMachine) {
  const Rows rows(support::generate(Kind::normal, 20, 5, 7801), ElementType::f32);
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  for (const std::size_t count : {1UL, 20UL})
    for (const std::size_t k : {most, most - 1, most / 12, most / 240, most / 480, std::size_t{1} << 62}) {
      const RowsView part = rows.view().slice(0, count);
      for (const Context& context : every_instruction_set()) {
        const KnnOptions options = {.short_rows = ShortRows::pad};
        for (const auto& error :
             {support::error_from([&] { exact_knn_graph(context, part, k, options); }),
              support::error_from([&] { knn(context, part, part, k, excluding(options)); })}) {
          ASSERT_TRUE(error.has_value()) << count << " rows, k " << k;
          EXPECT_TRUE(error->code() == ErrorCode::out_of_memory ||
                      error->code() == ErrorCode::invalid_argument)
              << error->what();
        }
        EXPECT_EQ(context.memory_used(), 0U);
      }
    }
}

TEST(KnnGraphErrors, NonFiniteRowsAreNamed) {
  for (const std::size_t n : {4UL, 700UL}) {
    Rows rows(support::generate(Kind::normal, n, 5, 7802), ElementType::f32);
    rows.put(n - 1, 4, std::numeric_limits<float>::infinity());
    expect_refused([&](const Context& context) { exact_knn_graph(context, rows, 2); },
                   fmt::format("row {} ", n - 1));
  }
}

}  // namespace
}  // namespace nearwise
