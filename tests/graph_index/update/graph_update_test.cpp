// Changes of graph indexes: what they hold afterwards, determinism, errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph_index/graph_index_state.h"
#include "graph_index/search_graph.h"
#include "graph_index/update/changed_index.h"
#include "nearwise/error.h"
#include "nearwise/graph_index.h"
#include "nearwise/machine.h"
#include "support/error_of.h"

namespace nearwise {
namespace {

using support::build_index;
using support::Content;
using support::expect_content;
using support::ids_from;
using support::Kind;
using support::one_thread;
using support::Problem;

struct Case {
  std::string name;
  Metric metric;
  ElementType type = ElementType::f32;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {{"sqeuclidean", Metric::sqeuclidean},
                                        {"cosine", Metric::cosine},
                                        {"inner_product", Metric::inner_product},
                                        {"half", Metric::euclidean, ElementType::f16},
                                        {"signed_bytes", Metric::sqeuclidean, ElementType::i8},
                                        {"bytes", Metric::sqeuclidean, ElementType::u8}};
  return all;
}

constexpr std::size_t first_rows = 500;

// Vectors without ties, the first of which are built into an index, and the others added.
Problem make_pool(const Case& tested, std::size_t rows = 1200, std::size_t dim = 12) {
  return support::make_problem({.kind = Kind::normal,
                                .rows = rows,
                                .queries = 15,
                                .dim = dim,
                                .base_type = tested.type,
                                .query_type = tested.type,
                                .seed = 31});
}

class GraphUpdate : public testing::TestWithParam<std::size_t> {
 protected:
  const Case& tested() const { return cases()[GetParam()]; }
};
INSTANTIATE_TEST_SUITE_P(Data, GraphUpdate, testing::Range<std::size_t>(0, cases().size()),
                         [](const auto& instance) { return cases()[instance.param].name; });

TEST_P(GraphUpdate, AnIndexHoldsWhatChangesSay) {
  const Problem problem = make_pool(tested(), 1200, tested().type == ElementType::f32 ? 12 : 40);
  const RowsView pool = problem.base;
  const RowsView queries = problem.queries;
  GraphIndex index = build_index(pool.slice(0, first_rows), tested().metric);
  Content content(pool);
  content.set(ids_from(0, first_rows), 0);
  EXPECT_EQ(index.next_id(), static_cast<Id>(first_rows));
  const auto check = [&](const char* step) {
    SCOPED_TRACE(step);
    expect_content(index, content, queries);
  };
  check("built");
  std::vector<Id> ids = ids_from(0, 50, 3);
  EXPECT_EQ(index.remove(one_thread(), ids), 50U);
  EXPECT_EQ(index.remove(one_thread(), ids), 0U);
  content.erase(ids);
  EXPECT_FALSE(index.contains(3));
  EXPECT_TRUE(index.contains(4));
  check("removed");
  // Ids below those there are, one that was removed among them.
  ids = ids_from(0, 20, 1000);
  EXPECT_EQ(index.add(one_thread(), pool.slice(500, 20), ids), 20U);
  content.set(ids, 500);
  EXPECT_EQ(index.next_id(), 19001);
  check("added with ids");
  for (std::size_t row = 520; row < 560; ++row) {
    index.add(one_thread(), pool.slice(row, 1));
    content.set(ids_from(19001 + static_cast<Id>(row - 520), 1), row);
  }
  EXPECT_EQ(index.next_id(), 19041);
  check("added one by one");
  ids = ids_from(100, 60);
  std::vector<Id> held;
  for (const Id id : ids)
    if (index.contains(id)) held.push_back(id);
  index.update(one_thread(), held, pool.slice(560, held.size()));
  content.set(held, 560);
  check("updated");
  index.compact(one_thread());
  check("compacted");
  EXPECT_EQ(index.edges().rows(), index.size());
  index.add(one_thread(), pool.slice(700, 100));
  content.set(ids_from(19041, 100), 700);
  check("added after compact");
  // More than a quarter.
  ids = ids_from(0, 300);
  const std::size_t before = index.size();
  const std::size_t removed = index.remove(one_thread(), ids);
  content.erase(ids);
  EXPECT_EQ(before - removed, index.size());
  EXPECT_EQ(index.edges().rows(), index.size());
  check("removed many");
  // More than there are.
  index.add(one_thread(), pool.slice(0, 700), ids_from(0, 700), OnDuplicate::replace);
  content.set(ids_from(0, 700), 0);
  check("built anew");
  EXPECT_EQ(index.beam(), 64U);
}

TEST_P(GraphUpdate, ThreadsAndInstructionSetsGiveTheSameBytes) {
  const Problem problem = make_pool(tested(), 800);
  const RowsView pool = problem.base;
  const auto changed = [&](const Context& context) {
    GraphIndex index = GraphIndex::build(context, pool.slice(0, 400),
                                         {.metric = tested().metric, .degree = 16}, std::nullopt);
    std::string bytes;
    index.remove(context, ids_from(0, 30, 2));
    index.add(context, pool.slice(400, 40));
    bytes += support::bytes_of(index);
    index.update(context, ids_from(61, 50), pool.slice(440, 50));
    for (std::size_t row = 490; row < 500; ++row) index.add(context, pool.slice(row, 1));
    bytes += support::bytes_of(index);
    index.remove(context, ids_from(200, 120));
    index.add(context, pool.slice(500, 300));
    index.compact(context);
    return bytes + support::bytes_of(index);
  };
  const std::string expected = changed(Context::cpu({.threads = 1}));
  for (const int threads : {2, 3, 8})
    EXPECT_TRUE(changed(Context::cpu({.threads = threads})) == expected) << threads;
  for (const std::string& set : instruction_sets())
    EXPECT_TRUE(changed(Context::cpu({.threads = 1, .isa = set})) == expected) << set;
}

TEST(GraphUpdateRecall, NewIslandsAndEqualVectorsCanBeReached) {
  const Problem problem = make_pool({"", Metric::sqeuclidean}, 600);
  GraphIndex index = build_index(static_cast<RowsView>(problem.base).slice(0, 500));
  // Far from all others, 30 at a time and one by one.
  Matrix<float> far(30, 12);
  for (std::size_t i = 0; i < 30 * 12; ++i) far.data()[i] = 3 + static_cast<float>(i % 7) * 0.01F;
  index.add(one_thread(), far);
  for (std::size_t i = 0; i < 40; ++i) {
    for (std::size_t d = 0; d < 12; ++d) far(0, d) = -3;  // all equal
    index.add(one_thread(), static_cast<RowsView>(far).slice(0, 1));
  }
  Matrix<float> equal(100, 12);
  std::fill_n(equal.data(), 100 * 12, 2.5F);
  for (std::size_t i = 0; i < 2; ++i) index.add(one_thread(), static_cast<RowsView>(equal).slice(50 * i, 50));
  const std::size_t size = index.size();
  EXPECT_EQ(size, 670U);
  // By edges alone; a search with such a beam would be exact.
  const Neighbors all =
      graph_index::search_rows(one_thread(), GraphIndexInternals::state_of(index).graph,
                               static_cast<RowsView>(problem.queries).slice(0, 1), {.k = size, .beam = size});
  std::vector<Id> rows(all.ids.data(), all.ids.data() + size);
  std::ranges::sort(rows);
  EXPECT_EQ(rows, ids_from(0, size));
  EXPECT_EQ(index.search(one_thread(), static_cast<RowsView>(far).slice(0, 1), 1).distances(0, 0), 0);
  EXPECT_EQ(index.search(one_thread(), static_cast<RowsView>(equal).slice(0, 1), 1).distances(0, 0), 0);
}

TEST(GraphUpdates, EqualDistancesAreOrderedById) {
  Matrix<float> rows(300, 4);
  for (std::size_t i = 0; i < 300 * 4; ++i)
    rows.data()[i] = static_cast<float>(i / 4 % 50);  // 6 equal rows each
  GraphIndex index =
      build_index(static_cast<RowsView>(rows).slice(0, 200), Metric::sqeuclidean, ids_from(1000, 200));
  index.add(one_thread(), static_cast<RowsView>(rows).slice(200, 100), ids_from(0, 100));
  const Neighbors found =
      index.search(one_thread(), static_cast<RowsView>(rows).slice(0, 50), 6, {.beam = 300});
  for (std::size_t query = 0; query < 50; ++query) {
    const auto first = static_cast<Id>(query);
    EXPECT_EQ(std::vector<Id>(found.ids.row(query).begin(), found.ids.row(query).end()),
              (std::vector<Id>{first, first + 50, first + 1000, first + 1050, first + 1100, first + 1150}));
  }
  const RangeNeighbors near =
      index.range_search(one_thread(), static_cast<RowsView>(rows).slice(7, 1), 0.5F, {.beam = 300});
  EXPECT_EQ(near.ids, (std::vector<Id>{7, 57, 1007, 1057, 1107, 1157}));
}

TEST(GraphUpdates, IdsThatAreThereAlready) {
  const Problem problem = make_pool({"", Metric::sqeuclidean}, 600);
  const RowsView pool = problem.base;
  GraphIndex index = build_index(pool.slice(0, 400));
  Content content(pool);
  content.set(ids_from(0, 400), 0);
  const std::vector<Id> ids = ids_from(390, 20);
  EXPECT_EQ(
      support::error_of([&] { index.add(one_thread(), pool.slice(400, 20), ids); }).what(),
      std::string("GraphIndex.add: id 390 is in the index already; remove it, or replace it (on_duplicate)"));
  expect_content(index, content, problem.queries);
  EXPECT_EQ(index.add(one_thread(), pool.slice(400, 20), ids, OnDuplicate::keep), 10U);
  content.set(std::span(ids).subspan(10), 410);
  expect_content(index, content, problem.queries);
  EXPECT_EQ(index.add(one_thread(), pool.slice(400, 20), ids, OnDuplicate::keep), 0U);
  EXPECT_EQ(index.add(one_thread(), pool.slice(420, 20), ids, OnDuplicate::replace), 20U);
  content.set(ids, 420);
  expect_content(index, content, problem.queries);
}

TEST(GraphUpdates, ErrorsNameWhatIsWrongAndChangeNothing) {
  const Problem problem = make_pool({"", Metric::sqeuclidean}, 600);
  const RowsView pool = problem.base;
  GraphIndex index = build_index(pool.slice(0, 400));
  const std::string before = support::bytes_of(index);
  const auto message = [](const auto& call) { return std::string(support::error_of(call).what()); };
  const auto contains = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  const std::vector<Id> twice = {900, 901, 900};
  const std::vector<Id> negative = {900, -1, 902};
  const std::vector<Id> missing = {1, 5000, 2};
  const std::vector<Id> too_large = {1, std::numeric_limits<Id>::max(), 2};
  const RowsView three = pool.slice(500, 3);
  EXPECT_TRUE(contains(message([&] { index.add(one_thread(), three, twice); }), "900 twice"));
  EXPECT_TRUE(contains(message([&] { index.add(one_thread(), three, negative); }), "got -1"));
  EXPECT_TRUE(contains(message([&] { index.add(one_thread(), three, too_large); }), "ids must be 0 to"));
  EXPECT_TRUE(contains(message([&] { index.add(one_thread(), three, ids_from(0, 2)); }), "one id per row"));
  EXPECT_TRUE(contains(message([&] { index.update(one_thread(), missing, three); }),
                       "GraphIndex.update: id 5000 is not in the index"));
  EXPECT_TRUE(
      contains(message([&] { index.update(one_thread(), ids_from(0, 2), three); }), "one id per row"));
  Matrix<float> bad(2, 12);
  std::fill_n(bad.data(), 24, 0.0F);
  bad(1, 3) = NAN;
  EXPECT_TRUE(contains(message([&] { index.add(one_thread(), bad); }), "row 1"));
  Matrix<std::uint8_t> bytes(2, 12);
  std::fill_n(bytes.data(), 24, std::uint8_t{0});
  EXPECT_TRUE(contains(message([&] { index.add(one_thread(), bytes); }), "element type"));
  EXPECT_TRUE(contains(message([&] { index.add(one_thread(), Matrix<float>(2, 11)); }), "dimension"));
  EXPECT_EQ(index.add(one_thread(), pool.slice(0, 0)), 0U);
  EXPECT_EQ(index.remove(one_thread(), {}), 0U);
  index.update(one_thread(), {}, pool.slice(0, 0));
  index.compact(one_thread());
  EXPECT_TRUE(support::bytes_of(index) == before);
}

TEST(GraphUpdates, AFailedChangeLeavesTheIndexAsItWas) {
  const Problem problem = make_pool({"", Metric::sqeuclidean}, 1200);
  const RowsView pool = problem.base;
  // Without room for more rows, and with.
  for (const std::size_t more : {0UL, 30UL}) {
    GraphIndex index = build_index(pool.slice(0, 400));
    if (more != 0) index.add(one_thread(), pool.slice(400, more));
    index.remove(one_thread(), ids_from(3, 5));
    const std::string before = support::bytes_of(index);
    const std::vector<std::function<void(const Context&)>> calls = {
        [&](const Context& own) { index.add(own, pool.slice(500, 10)); },
        [&](const Context& own) { index.add(own, pool.slice(500, 380)); },
        [&](const Context& own) { index.add(own, pool.slice(500, 700)); },
        [&](const Context& own) { index.update(own, ids_from(20, 200), pool.slice(500, 200)); },
        [&](const Context& own) { index.remove(own, ids_from(20, 200)); },
        [&](const Context& own) { index.compact(own); },
    };
    for (std::size_t call = 0; call < calls.size(); ++call) {
      SCOPED_TRACE(call);
      const Context cancelled = one_thread().with_progress({});
      cancelled.cancel();
      EXPECT_EQ(support::error_of([&] { calls[call](cancelled); }).code(), ErrorCode::cancelled);
      const Context small = Context::cpu({.threads = 1, .memory_limit = 1000});
      // Removal goes without memory: see AMemoryLimitOfTheIndexIsKept.
      if (call != 4) {
        EXPECT_EQ(support::error_of([&] { calls[call](small); }).code(), ErrorCode::out_of_memory);
      }
      if (call < 4) {
        // By its own first report; the clock runs fast.
        std::optional<Context> own;
        own = Context::cpu(
            {.threads = 1,
             .progress = [&](const Progress&) { own->cancel(); },
             .clock = [seconds = std::make_shared<std::atomic<int>>(0)] { return ++*seconds * 1.0; }});
        EXPECT_EQ(support::error_of([&] { calls[call](*own); }).code(), ErrorCode::cancelled);
      }
      EXPECT_TRUE(support::bytes_of(index) == before);
    }
    EXPECT_EQ(index.size(), 395 + more);
    index.add(one_thread(), pool.slice(500, 10));
    EXPECT_EQ(index.size(), 405 + more);
  }
}

TEST(GraphUpdates, AMemoryLimitOfTheIndexIsKept) {
  const Problem problem = make_pool({"", Metric::sqeuclidean}, 600);
  const RowsView pool = problem.base;
  const testing_io::TemporaryFolder folder;
  save(build_index(pool.slice(0, 400)), folder / "index.nw");
  const Context small = Context::cpu({.threads = 1, .memory_limit = 20'000});
  GraphIndex index = load_graph_index(small, folder / "index.nw");
  const std::string before = support::bytes_of(index);
  EXPECT_EQ(support::error_of([&] { index.add(one_thread(), pool.slice(400, 10)); }).code(),
            ErrorCode::out_of_memory);
  EXPECT_TRUE(support::bytes_of(index) == before);
  // Without memory to compact, vectors are removed all the same.
  EXPECT_EQ(index.remove(one_thread(), ids_from(0, 200)), 200U);
  Content content(pool);
  content.set(ids_from(200, 200), 200);
  expect_content(index, content, problem.queries);
}

TEST(GraphUpdates, AFileHoldsTheIndexAsItIs) {
  const Problem problem = make_pool({"", Metric::sqeuclidean}, 1200);
  const RowsView pool = problem.base;
  const testing_io::TemporaryFolder folder;
  GraphIndex index = build_index(pool.slice(0, 400));
  Content content(pool);
  content.set(ids_from(0, 400), 0);
  save(index, folder / "built.nw");
  {
    // A mapped index is changed.
    GraphIndex mapped = load_graph_index(one_thread(), folder / "built.nw");
    Content other = content;
    mapped.remove(one_thread(), ids_from(5, 20));
    other.erase(ids_from(5, 20));
    expect_content(mapped, other, problem.queries);
    mapped.add(one_thread(), pool.slice(400, 30));
    other.set(ids_from(400, 30), 400);
    expect_content(mapped, other, problem.queries);
  }
  index.remove(one_thread(), ids_from(380, 20));
  content.erase(ids_from(380, 20));
  save(index, folder / "removed.nw");
  index.add(one_thread(), pool.slice(400, 30), ids_from(370, 30), OnDuplicate::replace);
  content.set(ids_from(370, 30), 400);
  save(index, folder / "changed.nw");
  GraphIndex loaded = load_graph_index(one_thread(), folder / "changed.nw");
  expect_content(loaded, content, problem.queries);
  EXPECT_EQ(loaded.next_id(), 400);
  EXPECT_TRUE(support::bytes_of(loaded) == support::bytes_of(index));
  for (GraphIndex* const one : {&loaded, &index}) {
    one->update(one_thread(), ids_from(10, 10), pool.slice(500, 10));
    one->remove(one_thread(), ids_from(395, 5));
  }
  content.set(ids_from(10, 10), 500);
  content.erase(ids_from(395, 5));
  expect_content(loaded, content, problem.queries);
  EXPECT_TRUE(support::bytes_of(loaded) == support::bytes_of(index));
  // Ids of removed vectors are not given again.
  loaded.compact(one_thread());
  save(loaded, folder / "compact.nw");
  GraphIndex again = load_graph_index(one_thread(), folder / "compact.nw");
  EXPECT_EQ(again.next_id(), 400);
  expect_content(again, content, problem.queries);
  GraphIndex removed = load_graph_index(one_thread(), folder / "removed.nw");
  EXPECT_EQ(removed.size(), 380U);
  EXPECT_EQ(removed.next_id(), 400);
}

TEST(GraphUpdates, AnIndexMayBecomeEmpty) {
  for (const Case& tested : cases()) {
    SCOPED_TRACE(tested.name);
    const Problem problem = make_pool(tested, 300, 40);
    const RowsView pool = problem.base;
    GraphIndex index = build_index(pool.slice(0, 100), tested.metric);
    Content content(pool);
    EXPECT_EQ(index.remove(one_thread(), ids_from(0, 100)), 100U);
    expect_content(index, content, problem.queries);
    EXPECT_EQ(index.range_search(one_thread(), problem.queries, 1.0F).offsets,
              std::vector<std::size_t>(16, 0));
    const testing_io::TemporaryFolder folder;
    save(index, folder / "empty.nw");
    GraphIndex loaded = load_graph_index(one_thread(), folder / "empty.nw");
    for (GraphIndex* const one : {&index, &loaded}) {
      EXPECT_EQ(one->size(), 0U);
      one->compact(one_thread());
      EXPECT_EQ(support::error_of([&] { one->calibrate(one_thread()); }).code(), ErrorCode::invalid_argument);
      one->add(one_thread(), pool.slice(100, 1));
      one->add(one_thread(), pool.slice(101, 150));
    }
    content.set(ids_from(100, 151), 100);
    expect_content(index, content, problem.queries);
    expect_content(loaded, content, problem.queries);
  }
}

TEST(GraphUpdates, VectorsThatTheCodesDoNotHold) {
  // Integers are their own codes; fractions are not.
  Matrix<float> rows(600, 6);
  const Random random(35);
  for (std::size_t i = 0; i < 600 * 6; ++i)
    rows.data()[i] = static_cast<float>(random.below(i, 200)) + (i >= 500 * 6 ? 0.37F : 0.0F);
  const RowsView pool = rows;
  GraphIndex index = build_index(pool.slice(0, 400));
  const auto is_exact = [&] { return GraphIndexInternals::state_of(index).graph.rows.codec->is_exact(); };
  EXPECT_TRUE(is_exact());
  index.add(one_thread(), pool.slice(400, 100));
  EXPECT_TRUE(is_exact());
  index.add(one_thread(), pool.slice(500, 100));
  EXPECT_FALSE(is_exact());
  Content content(pool);
  content.set(ids_from(0, 600), 0);
  EXPECT_EQ(index.ids(), content.ids());
  // Beyond the range of the codes.
  const Problem problem = make_pool({"", Metric::inner_product}, 500);
  for (const Metric metric : {Metric::sqeuclidean, Metric::inner_product}) {
    GraphIndex narrow = build_index(static_cast<RowsView>(problem.base).slice(0, 400), metric);
    Matrix<float> large(3, 12);
    for (std::size_t i = 0; i < 36; ++i) large.data()[i] = i % 2 == 0 ? 1e4F : -2e4F;
    narrow.add(one_thread(), large);
    const Neighbors found = narrow.search(one_thread(), static_cast<RowsView>(large).slice(0, 1), 3);
    std::vector<Id> ids(found.ids.data(), found.ids.data() + 3);
    EXPECT_EQ(ids, ids_from(400, 3));
  }
}

TEST(GraphUpdates, CalibrationFollowsWhatIsThere) {
  const Problem problem =
      support::make_problem({.kind = Kind::normal, .rows = 2000, .queries = 50, .dim = 10, .seed = 36});
  const RowsView pool = problem.base;
  GraphIndex index = build_index(pool.slice(0, 1500));
  index.remove(one_thread(), ids_from(0, 300, 4));
  index.add(one_thread(), pool.slice(1500, 100));
  const GraphCalibration found = index.calibrate(one_thread(), {.target_recall = 0.95, .sample = 300});
  EXPECT_TRUE(found.reached());
  EXPECT_EQ(index.calibration(), found);
  index.remove(one_thread(), ids_from(1, 200, 4));
  EXPECT_EQ(index.calibration(), found);  // does not follow later changes
}

}  // namespace
}  // namespace nearwise
