// What nearwise/searchable.h promises of every index.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "nearwise/exact.h"
#include "nearwise/graph_index.h"
#include "nearwise/ivf.h"
#include "nearwise/searchable.h"
#include "nearwise/sharded.h"
#include "support/error_of.h"
#include "support/filter_cases.h"
#include "support/knn_cases.h"
#include "support/range_cases.h"

namespace nearwise {
namespace {

using support::same;

static_assert(Searchable<Exact> && Searchable<Ivf> && Searchable<GraphIndex> && Searchable<Sharded<Exact>> &&
              Searchable<Replicated<Exact>> && Searchable<Sharded<Ivf>> && Searchable<Replicated<Ivf>> &&
              Searchable<Sharded<Replicated<Ivf>>> && Searchable<Sharded<GraphIndex>> &&
              Searchable<Replicated<GraphIndex>>);

constexpr std::size_t base_rows = 500;
constexpr std::size_t query_count = 25;

const support::Problem& problem() {
  static const support::Problem made = support::make_problem({.kind = support::Kind::exact_duplicates,
                                                              .rows = base_rows,
                                                              .queries = query_count,
                                                              .dim = 7,
                                                              .seed = 51});
  return made;
}

std::vector<Context> contexts(std::size_t count) { return {count, Context::cpu({.threads = 1})}; }

// One search function of every kind; `complete`: it finds every vector.
struct Kind {
  std::string name;
  bool is_exact;
  std::function<Neighbors(RowsView queries, std::size_t k, const Filter& filter)> search;
  std::function<RangeNeighbors(RowsView queries, float radius, const Filter& filter)> range_search;
  std::size_t size;
};

template <typename Index, typename Options>
Kind kind(const std::string& name, Index index, const Options& base_options, bool is_exact) {
  const auto shared = std::make_shared<Index>(std::move(index));
  typename Index::RangeSearchOptions base_range_options;
  if constexpr (requires { base_range_options.probes; }) base_range_options.probes = base_options.probes;
  return {name, is_exact,
          [=](RowsView queries, std::size_t k, const Filter& filter) {
            Options options = base_options;
            options.filter = filter;
            return shared->search(Context::cpu({.threads = 2}), queries, k, options);
          },
          [=](RowsView queries, float radius, const Filter& filter) {
            typename Index::RangeSearchOptions options = base_range_options;
            options.filter = filter;
            return shared->range_search(Context::cpu({.threads = 2}), queries, radius, options);
          },
          shared->size()};
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> every = [] {
    std::vector<Kind> made;
    const Context context = Context::cpu({.threads = 1});
    const RowsView base = problem().base;
    const ExactSearchOptions padded = {.short_rows = ShortRows::pad};
    made.push_back(kind("Exact", Exact::prepare(context, base), padded, true));
    made.push_back(kind("Sharded<Exact>", shard_exact(contexts(3), base), padded, true));
    made.push_back(kind("Replicated<Exact>", replicate_exact(contexts(3), base), padded, true));
    made.push_back(
        kind("Sharded<Replicated<Exact>>", shard_and_replicate_exact(contexts(4), 2, base), padded, true));
    const std::vector<std::pair<std::string, Encoding>> encodings = {
        {"Flat", Flat{}}, {"Pq", Pq{.code_bytes = 3}}, {"Lsq", Lsq{.code_bytes = 2, .rounds = 1}}};
    for (const auto& [name, encoding] : encodings) {
      const auto built = [&] {
        return Ivf::build(context, base, {.lists = 9, .encoding = encoding},
                          CalibrationOptions{.queries = 100});
      };
      // All lists and candidates: every vector is found.
      const IvfSearchOptions all = {.probes = 9, .candidates = base_rows + 10};
      made.push_back(kind("Ivf " + name, built(), all, true));
      made.push_back(kind("Ivf " + name + ", calibrated", built(), IvfSearchOptions(), false));
      made.push_back(kind("Sharded<Ivf> " + name, shard_ivf(contexts(3), built()), all, true));
      made.push_back(kind("Replicated<Ivf> " + name, replicate_ivf(contexts(2), built()), all, true));
      made.push_back(kind("Sharded<Replicated<Ivf>> " + name,
                          shard_and_replicate_ivf(contexts(4), 2, built()), all, true));
      made.push_back(kind("Sharded<Ivf> " + name + ", calibrated", shard_ivf(contexts(3), built()),
                          IvfSearchOptions(), false));
    }
    // The widest beam finds every vector.
    made.push_back(kind("GraphIndex", GraphIndex::build(context, base, {.degree = 16}),
                        GraphSearchOptions{.beam = base_rows + 10}, true));
    const auto changed = [&] {
      GraphIndex index = GraphIndex::build(context, base.slice(0, 400), {.degree = 16});
      index.remove(context, std::vector<Id>{3, 200, 399});
      index.add(context, base.slice(400, base_rows - 400));
      for (const Id id : {200, 3, 399})
        index.add(context, base.slice(static_cast<std::size_t>(id), 1), std::vector<Id>{id});
      return index;
    };
    made.push_back(kind("GraphIndex, changed", changed(), GraphSearchOptions(), false));
    GraphIndex compact = changed();
    compact.compact(context);  // which decides ties by ids again
    made.push_back(
        kind("GraphIndex, compact", std::move(compact), GraphSearchOptions{.beam = base_rows + 10}, true));
    made.push_back(kind("GraphIndex, calibrated", GraphIndex::build(context, base, {.degree = 16}),
                        GraphSearchOptions(), false));
    made.push_back(kind("Sharded<GraphIndex>", shard_graph_index(contexts(3), base, {.degree = 16}),
                        GraphSearchOptions{.beam = base_rows + 10}, true));
    made.push_back(kind("Sharded<GraphIndex>, calibrated",
                        shard_graph_index(contexts(3), base, {.degree = 16}), GraphSearchOptions(), false));
    std::vector<Placed<GraphIndex>> copies;
    for (const Context& own : contexts(2))
      copies.push_back({own, GraphIndex::build(own, base, {.degree = 16})});
    made.push_back(kind("Replicated<GraphIndex>", Replicated<GraphIndex>(std::move(copies)),
                        GraphSearchOptions{.beam = base_rows + 10}, true));
    return made;
  }();
  return every;
}

Neighbors search(const Kind& kind, std::size_t k, const Filter& filter = {}) {
  return kind.search(problem().queries, k, filter);
}

// Best first, the lower id in a tie, no id twice, padding at the end only.
void expect_sorted(const Neighbors& found) {
  for (std::size_t query = 0; query < found.ids.rows(); ++query)
    for (std::size_t i = 0; i + 1 < found.ids.cols(); ++i) {
      if (found.ids(query, i + 1) == no_id) continue;
      ASSERT_NE(found.ids(query, i), no_id);
      ASSERT_LE(found.distances(query, i), found.distances(query, i + 1));
      if (found.distances(query, i) == found.distances(query, i + 1)) {
        ASSERT_LT(found.ids(query, i), found.ids(query, i + 1));
      }
    }
}

TEST(Conformance, ResultsAreSorted) {
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.name);
    EXPECT_EQ(kind.size, base_rows);
    for (const std::size_t k : {1UL, 10UL, base_rows + 5}) expect_sorted(search(kind, k));
  }
}

TEST(Conformance, ExactIndexesFindTheNeighbours) {
  for (const Kind& kind : kinds()) {
    if (!kind.is_exact) continue;
    SCOPED_TRACE(kind.name);
    for (const std::size_t k : {1UL, 10UL, base_rows + 5})
      EXPECT_TRUE(
          same(oracle::knn(problem().queries, problem().base, k, Metric::sqeuclidean), search(kind, k)));
  }
}

TEST(Conformance, AFilterThatAllowsEverythingChangesNothing) {
  const Filter everything = Filter::mask(std::vector<std::uint8_t>(base_rows, 1));
  const Filter nothing_denied = Filter::deny(std::vector<Id>{base_rows + 1});
  for (const Kind& kind : kinds()) {
    if (!kind.is_exact) continue;
    SCOPED_TRACE(kind.name);
    const oracle::Answer expected = support::as_expected(search(kind, 10));
    EXPECT_TRUE(same(expected, search(kind, 10, everything)));
    EXPECT_TRUE(same(expected, search(kind, 10, nothing_denied)));
  }
}

TEST(Conformance, OnlyAllowedIdsAreFoundAndAllThatThereAre) {
  for (const support::FilterKind filter_kind : support::every_filter_kind)
    for (const double density : {0.0, 0.01, 0.2, 0.9}) {
      const support::FilterCase filter = make_filter(filter_kind, base_rows, query_count, density, 52);
      const oracle::Answer expected =
          support::filtered_answer(problem().queries, problem().base, 10, Metric::sqeuclidean, filter.allows);
      for (const Kind& kind : kinds()) {
        SCOPED_TRACE(kind.name + ", " + std::string(name(filter_kind)) + " " + std::to_string(density));
        const Neighbors found = search(kind, 10, filter.filter);
        expect_sorted(found);
        for (std::size_t query = 0; query < query_count; ++query)
          for (const Id id : found.ids.row(query)) ASSERT_TRUE(id == no_id || filter.allows(query, id));
        EXPECT_TRUE(!kind.is_exact || same(expected, found));
      }
    }
}

// Padding only where fewer than k are allowed, in approximate indexes too: probes go on.
TEST(Conformance, SharedFiltersArePaddedOnlyAtTheirEnd) {
  for (const double density : {0.01, 0.05, 0.5}) {
    const support::FilterCase filter =
        make_filter(support::FilterKind::mask, base_rows, query_count, density, 53);
    std::size_t allowed = 0;
    for (Id id = 0; id < static_cast<Id>(base_rows); ++id) allowed += filter.allows(0, id) ? 1 : 0;
    for (const Kind& kind : kinds()) {
      SCOPED_TRACE(kind.name);
      const Neighbors found = search(kind, 8, filter.filter);
      for (std::size_t query = 0; query < query_count; ++query)
        ASSERT_EQ(std::ranges::count(found.ids.row(query), no_id),
                  static_cast<std::ptrdiff_t>(8 - std::min<std::size_t>(8, allowed)));
    }
  }
}

// Within these radii, the first query has no, some and all answers.
std::vector<float> radii() {
  const RowsView queries = problem().queries;
  return {-1.0F, support::radius_at_rank(queries, problem().base, 20, Metric::sqeuclidean),
          std::numeric_limits<float>::infinity()};
}

TEST(Conformance, RangeSearchFindsWhatIsWithinTheRadius) {
  for (const float radius : radii()) {
    const oracle::RangeAnswer expected =
        oracle::range(problem().queries, problem().base, radius, Metric::sqeuclidean);
    for (const Kind& kind : kinds()) {
      SCOPED_TRACE(kind.name + ", radius " + std::to_string(radius));
      const RangeNeighbors found = kind.range_search(problem().queries, radius, {});
      ASSERT_EQ(found.offsets.size(), query_count + 1);
      EXPECT_TRUE(!kind.is_exact || support::same(expected, found));
      for (const float distance : found.distances) ASSERT_LE(distance, radius);
    }
  }
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.name);
    EXPECT_EQ(kind.range_search(RowsView(problem().queries).slice(0, 0), 1, {}).offsets,
              std::vector<std::size_t>{0});
    const float nan = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(support::error_of([&] { kind.range_search(problem().queries, nan, {}); }).code(),
              ErrorCode::invalid_argument);
  }
}

TEST(Conformance, RangeSearchUnderFilters) {
  for (const support::FilterKind filter_kind : support::every_filter_kind)
    for (const double density : {0.0, 0.01, 0.2, 0.9}) {
      const support::FilterCase filter = make_filter(filter_kind, base_rows, query_count, density, 55);
      for (const float radius : radii()) {
        const oracle::RangeAnswer expected = support::filtered_range(
            problem().queries, problem().base, radius, Metric::sqeuclidean, filter.allows);
        for (const Kind& kind : kinds()) {
          SCOPED_TRACE(kind.name + ", " + std::string(name(filter_kind)) + " " + std::to_string(density));
          const RangeNeighbors found = kind.range_search(problem().queries, radius, filter.filter);
          for (std::size_t query = 0; query < query_count; ++query)
            for (std::size_t i = found.offsets[query]; i < found.offsets[query + 1]; ++i)
              ASSERT_TRUE(filter.allows(query, found.ids[i]) && found.distances[i] <= radius);
          EXPECT_TRUE(!kind.is_exact || support::same(expected, found));
        }
      }
      // Lists of other numbers of queries are refused.
      if (!filter.filter.queries()) continue;
      for (const Kind& kind : kinds())
        EXPECT_EQ(support::error_of([&] {
                    kind.range_search(RowsView(problem().queries).slice(0, 7), 1, filter.filter);
                  }).code(),
                  ErrorCode::invalid_argument)
            << kind.name;
    }
}

TEST(Conformance, QueriesDoNotDependOnTheirBatch) {
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.name);
    const Neighbors together = search(kind, 6);
    for (const std::size_t query : {0UL, 7UL, query_count - 1}) {
      const Neighbors alone = kind.search(RowsView(problem().queries).slice(query, 1), 6, {});
      EXPECT_TRUE(std::ranges::equal(alone.ids.row(0), together.ids.row(query)));
      EXPECT_TRUE(std::ranges::equal(alone.distances.row(0), together.distances.row(query)));
    }
  }
}

TEST(Conformance, ManyThreadsMaySearchAtOnce) {
  const support::FilterCase filter = make_filter(support::FilterKind::mask, base_rows, query_count, 0.3, 54);
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.name);
    const oracle::Answer expected = support::as_expected(search(kind, 5, filter.filter));
    std::vector<Neighbors> found(4);
    {
      std::vector<std::jthread> threads;
      for (Neighbors& one : found) threads.emplace_back([&] { one = search(kind, 5, filter.filter); });
    }
    for (const Neighbors& one : found) EXPECT_TRUE(same(expected, one));
  }
}

}  // namespace
}  // namespace nearwise
