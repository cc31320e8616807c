// Changes of graphs under limits: threads, instruction sets, memory, cancellation, and arguments that are
// refused.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "support/cancelling.h"
#include "support/change_cases.h"
#include "support/error_of.h"
#include "support/memory_limits.h"

namespace nearwise {
namespace {

using support::by_comparing;
using support::by_partitions;
using support::error_of;
using support::Kind;
using support::Rows;
using support::same_bytes;

// Two halves with a graph each, the graph of all, and every kind of change of them.
class Changes {
 public:
  Changes(std::size_t count, ElementType type, Metric metric = Metric::sqeuclidean)
      : rows_(support::generate(Kind::exact_duplicates, count, 8, 21), type),
        left_(build(rows_.view().slice(0, count / 2), metric)),
        right_(build(rows_.view().slice(count / 2, count - count / 2), metric)),
        whole_(build(rows_, metric)),
        removed_(support::every(count, 3)) {}

  using Change = std::function<KnnGraph(const Context&)>;
  struct Named {
    std::string name;
    Change change;
  };

  std::vector<Named> every() const {
    graph::Tuning partitions = by_partitions(6);
    partitions.overlap = 2;
    partitions.sample = 6;  // fewer than there are: some are drawn
    const KnnGraphChangeOptions options = {.target_recall = 0.97};
    return {
        {"merge",
         [=, this](const Context& context) {
           return graph::merge(context, rows_, left_, right_, options, partitions);
         }},
        {"merge few",
         [=, this](const Context& context) {
           return graph::merge(context, rows_, left_, right_, options, by_comparing(6));
         }},
        {"add",
         [=, this](const Context& context) {
           return graph::add(context, rows_, left_, options, partitions, support::small_partitions(6));
         }},
        {"add few",
         [=, this](const Context& context) {
           return graph::add(context, rows_, left_, options, by_comparing(6), support::small_partitions(6));
         }},
        {"remove",
         [=, this](const Context& context) {
           return graph::remove(context, rows_, whole_, removed_, options, partitions);
         }},
        {"remove few",
         [=, this](const Context& context) {
           return graph::remove(context, rows_, whole_, removed_, options, by_comparing(6));
         }},
    };
  }

 private:
  static KnnGraph build(RowsView rows, Metric metric) {
    return graph::build(Context::cpu({.threads = 1}), rows,
                        {.degree = 6, .metric = metric, .target_recall = 0.9}, support::small_partitions(6));
  }

  Rows rows_;
  KnnGraph left_;
  KnnGraph right_;
  KnnGraph whole_;
  std::vector<Id> removed_;
};

// Would catch: groups whose order or division among threads shows.
TEST(ChangeGraphThreads, AnyNumberOfThreadsGivesTheSameBytes) {
  const Changes changes(700, ElementType::f32);
  for (const Changes::Named& named : changes.every()) {
    const KnnGraph expected = named.change(Context::cpu({.threads = 1, .seed = 3}));
    for (const int threads : {2, 3, 8}) {
      const KnnGraph given = named.change(Context::cpu({.threads = threads, .seed = 3}));
      EXPECT_TRUE(same_bytes(given.neighbors, expected.neighbors))
          << named.name << ", " << threads << " threads";
      EXPECT_EQ(given.report.rounds.size(), expected.report.rounds.size()) << named.name;
    }
  }
}

TEST(ChangeGraphSets, EveryInstructionSetGivesTheSameBytes) {
  for (const Metric metric : {Metric::sqeuclidean, Metric::cosine})
    for (const ElementType type : {ElementType::f32, ElementType::u8}) {
      const Changes changes(600, type, metric);
      for (const Changes::Named& named : changes.every()) {
        const auto& contexts = support::every_instruction_set();
        const KnnGraph expected = named.change(contexts.front());
        for (const Context& context : contexts)
          EXPECT_TRUE(same_bytes(named.change(context).neighbors, expected.neighbors))
              << named.name << " " << context.isa();
      }
    }
}

TEST(ChangeGraphMemory, TheLimitThatIsNamedIsEnoughAndIsKept) {
  for (const ElementType type : {ElementType::f32, ElementType::u8})
    for (const int threads : {1, 3}) {
      const Changes changes(1500, type);
      for (const Changes::Named& named : changes.every()) {
        SCOPED_TRACE(named.name);
        const Context poor = Context::cpu({.threads = threads, .memory_limit = 1 << 16});
        const Error error = error_of([&] { named.change(poor); });
        ASSERT_EQ(error.code(), ErrorCode::out_of_memory) << error.what();
        EXPECT_EQ(poor.memory_used(), 0U);
        const std::uint64_t limit = std::ranges::max(support::sizes_in(error.what()));
        const Context enough = Context::cpu({.threads = threads, .memory_limit = limit});
        const KnnGraph given = named.change(enough);
        EXPECT_LE(enough.memory_peak(), limit);
        EXPECT_EQ(enough.memory_used(), 0U);
        EXPECT_TRUE(same_bytes(given.neighbors, named.change(Context::cpu({.threads = threads})).neighbors));
      }
    }
}

// Under the clock of expect_cancelled_at_report.
int reports_of(const Changes::Change& change) {
  std::atomic<int> reports = 0;
  std::atomic<int> seconds = 0;
  change(Context::cpu({.threads = 2,
                       .progress = [&](const Progress&) { ++reports; },
                       .clock = [&] { return static_cast<double>(++seconds); }}));
  return reports;
}

TEST(ChangeGraphCancelThreads, StopsWhereverItIsAndGivesItsMemoryBack) {
  const Changes changes(800, ElementType::f32);
  for (const Changes::Named& named : changes.every()) {
    SCOPED_TRACE(named.name);
    const int reports = reports_of(named.change);
    for (const int when : {0, reports / 2, reports * 2 / 3})
      support::expect_cancelled_at_report(when, 2, "",
                                          [&](const Context& context) { named.change(context); });
    const Context cancelled = Context::cpu({.threads = 1});
    cancelled.cancel();
    EXPECT_EQ(error_of([&] { named.change(cancelled); }).code(), ErrorCode::cancelled);
  }
}

class ChangeGraphErrors : public ::testing::Test {
 protected:
  KnnGraph build(std::size_t first, std::size_t count, std::size_t degree = 4,
                 Metric metric = Metric::sqeuclidean) const {
    return build_knn_graph(context_, rows_.view().slice(first, count), {.degree = degree, .metric = metric});
  }
  static std::string message(const std::function<void()>& call) {
    const Error error = error_of(call);
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
    return error.what();
  }

  const Context context_ = Context::cpu({.threads = 1});
  const Rows rows_{support::generate(Kind::normal, 50, 4, 22), ElementType::f32};
};

TEST_F(ChangeGraphErrors, OfMergingSayWhatWasExpectedAndGiven) {
  const auto merging = [&](const KnnGraph& left, const KnnGraph& right, double recall = 0.95) {
    return message([&] { merge_knn_graphs(context_, rows_, left, right, {.target_recall = recall}); });
  };
  EXPECT_EQ(merging(build(0, 20), build(20, 20)),
            "merge_knn_graphs: the rows of both graphs, 20 and 20, expected, got 50 rows");
  EXPECT_EQ(merging(build(0, 20), build(20, 30, 5)),
            "merge_knn_graphs: both graphs must have the same degree, got 4 and 5");
  EXPECT_EQ(merging(build(0, 20), build(20, 30, 4, Metric::cosine)),
            "merge_knn_graphs: both graphs must have the same metric, got sqeuclidean and cosine");
  EXPECT_EQ(merging(build(0, 20), build(20, 30), 0),
            "merge_knn_graphs: target_recall must be above 0 and at most 1, got 0");
  // The sides exchanged.
  EXPECT_NE(
      merging(build(20, 30), build(0, 20)).find("merge_knn_graphs: the left graph must be of these rows"),
      std::string::npos);
  KnnGraph broken = build(20, 30);
  broken.neighbors.ids(7, 1) = 7;
  EXPECT_NE(
      merging(build(0, 20), broken).find("the right graph: knn graph: row 7 must not be its own neighbour"),
      std::string::npos);
}

// A graph in which 1 % of the rows belong to other vectors. Would catch: a check of 64 rows, which misses it
// every other time.
TEST_F(ChangeGraphErrors, AGraphWithOnePercentOfForeignRowsIsRefused) {
  const Rows rows(support::generate(Kind::normal, 3000, 4, 23), ElementType::f32);
  const KnnGraphOptions options = {.degree = 4};
  KnnGraph left = build_knn_graph(context_, rows.view().slice(0, 2000), options);
  const KnnGraph right = build_knn_graph(context_, rows.view().slice(2000, 1000), options);
  for (std::size_t row = 50; row < 2000; row += 100)
    for (float& distance : left.neighbors.distances.row(row)) distance *= 1.001F;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Context context = Context::cpu({.threads = 1, .seed = seed});
    EXPECT_NE(message([&] { merge_knn_graphs(context, rows, left, right); }).find("must be of these rows"),
              std::string::npos)
        << seed;
  }
}

TEST_F(ChangeGraphErrors, OfAddingSayWhatWasExpectedAndGiven) {
  EXPECT_EQ(message([&] { add_to_knn_graph(context_, rows_.view().slice(0, 30), build(0, 40)); }),
            "add_to_knn_graph: the 40 rows of the graph and then others expected, got 30 rows");
  EXPECT_NE(message([&] { add_to_knn_graph(context_, rows_, build(10, 30)); }).find("must be of these rows"),
            std::string::npos);
  Rows bad(support::generate(Kind::normal, 50, 4, 22), ElementType::f32);
  const KnnGraph graph = build(0, 40);
  bad.put(45, 1, std::numeric_limits<float>::quiet_NaN());
  EXPECT_NE(message([&] { add_to_knn_graph(context_, bad, graph); }).find("45"), std::string::npos);
}

TEST_F(ChangeGraphErrors, OfRemovingSayWhatWasExpectedAndGiven) {
  const KnnGraph graph = build(0, 50);
  const auto removing = [&](const std::vector<Id>& ids) {
    return message([&] { remove_from_knn_graph(context_, rows_, graph, ids); });
  };
  EXPECT_EQ(removing({3, 50}), "remove_from_knn_graph: ids from 0 to 49 expected, got 50");
  EXPECT_EQ(removing({-1}), "remove_from_knn_graph: ids from 0 to 49 expected, got -1");
  EXPECT_EQ(removing({4, 9, 4}), "remove_from_knn_graph: different ids expected, got 4 twice");
  EXPECT_EQ(removing(std::vector<Id>(51, 1)),
            "remove_from_knn_graph: at most 50 ids expected, one for each row, got 51");
  EXPECT_EQ(message([&] { remove_from_knn_graph(context_, rows_.view().slice(0, 40), graph, {}); }),
            "remove_from_knn_graph: the 50 rows of the graph expected, got 40");
}

}  // namespace
}  // namespace nearwise
