// Local joins against the oracle: every list holds the best of the compared vectors, on every instruction
// set, for any data and order of work.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "backend/dispatch.h"
#include "core/distance.h"
#include "ops/exact_search.h"
#include "oracle/join.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::Kind;
using support::Rows;

// Sizes around the widths of panels and of a scan's queries; some groups have only new members, some none.
std::vector<oracle::JoinGroup> make_groups(std::size_t rows, std::uint64_t seed) {
  const Random random(seed, 90);
  std::vector<oracle::JoinGroup> groups;
  std::uint64_t index = 0;
  for (const std::size_t size : {1UL, 2UL, 15UL, 17UL, 32UL, 33UL, 65UL, 270UL}) {
    std::vector<std::uint32_t> all(rows);
    std::iota(all.begin(), all.end(), 0U);
    const std::size_t members = std::min(size, rows);
    for (std::size_t i = 0; i < members; ++i)
      std::swap(all[i], all[i + static_cast<std::size_t>(random.below(index++, rows - i))]);
    all.resize(members);
    const std::size_t some[] = {members, 0, members / 2};
    groups.push_back({all, some[groups.size() % 3]});
  }
  return groups;
}

struct Joined {
  std::vector<std::uint32_t> order;
  std::vector<NeighborEntry> lists;
};

// All groups or none are apart. begun: initial lists, may be empty.
Joined join(const Context& context, RowsView rows, const std::vector<oracle::JoinGroup>& groups,
            std::size_t degree, Metric metric, const std::vector<NeighborEntry>& begun = {}) {
  Joined joined;
  joined.order.resize(rows.rows());
  // An order other than that of the rows.
  for (std::size_t i = 0; i < rows.rows(); ++i)
    joined.order[i] = static_cast<std::uint32_t>(rows.rows() - 1 - i);
  joined.lists.assign(rows.rows() * degree, empty_entry);
  if (!begun.empty()) joined.lists = begun;
  std::vector<std::uint32_t> members;
  std::vector<std::uint64_t> ends;
  std::vector<std::uint32_t> new_counts;
  for (const oracle::JoinGroup& group : groups) {
    members.insert(members.end(), group.members.begin(), group.members.end());
    ends.push_back(members.size());
    new_counts.push_back(static_cast<std::uint32_t>(group.new_count));
  }
  const auto stream = open_stream(context);
  const std::vector<float> centre = centre_of(*stream, rows, metric);
  const auto state = dispatch(&Ops::start_join, "start_join", *stream,
                              StartJoinArgs{.rows = rows,
                                            .order = joined.order,
                                            .metric = metric,
                                            .type = scan_type(*stream, rows, metric),
                                            .centre = centre,
                                            .degree = degree,
                                            .lists = joined.lists,
                                            .has_neighbors = !begun.empty()});
  dispatch(&Ops::join_groups, "join_groups", *stream,
           JoinGroupsArgs{*state, {members, ends, new_counts, !groups.empty() && groups.front().bipartite}});
  return joined;
}

// On every instruction set.
void expect_lists(RowsView rows, const std::vector<oracle::JoinGroup>& groups, std::size_t degree,
                  Metric metric) {
  std::vector<std::vector<oracle::Candidate>> expected;
  for (const Context& context : support::every_instruction_set()) {
    SCOPED_TRACE(context.isa());
    const Joined given = join(context, rows, groups, degree, metric);
    if (expected.empty()) expected = oracle::join(rows, given.order, groups, degree, metric);
    for (std::size_t place = 0; place < rows.rows(); ++place)
      for (std::size_t i = 0; i < degree; ++i) {
        const NeighborEntry entry = given.lists[place * degree + i];
        ASSERT_EQ(entry == empty_entry, i >= expected[place].size()) << "place " << place << " entry " << i;
        if (entry == empty_entry) continue;
        ASSERT_EQ(number_of(entry), static_cast<std::uint32_t>(expected[place][i].id)) << place << " " << i;
        ASSERT_EQ(distance_of_key(metric, key_of(entry)), expected[place][i].value) << place << " " << i;
        ASSERT_TRUE(is_new(entry));
      }
  }
}

class JoinGroups : public ::testing::TestWithParam<Metric> {};

TEST_P(JoinGroups, ListsAreTheOraclesForEveryTypeAndInstructionSet) {
  for (const ElementType type : support::every_type)
    for (const std::size_t dim : {1UL, 7UL, 33UL}) {
      const Rows rows(support::generate(Kind::exact_duplicates, 310, dim, 3), type);
      SCOPED_TRACE(fmt::format("{} dim {}", name(type), dim));
      expect_lists(rows, make_groups(310, dim), 5, GetParam());
      if (HasFatalFailure()) return;
    }
}

// Would catch: a score used without an error bound, a bound that is too tight.
TEST_P(JoinGroups, ListsAreTheOraclesForEveryKindOfData) {
  for (const Kind kind : support::every_kind) {
    const Rows rows(support::generate(kind, 120, 9, 4), ElementType::f32);
    SCOPED_TRACE(name(kind));
    expect_lists(rows, make_groups(120, 5), 10, GetParam());
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Metrics, JoinGroups, ::testing::ValuesIn(support::every_metric),
                         support::metric_name);

// Would catch: members of one part compared with each other, a panel of the wrong part.
TEST_P(JoinGroups, PartsThatAreApartMeetEachOtherOnly) {
  for (const ElementType type : support::every_type) {
    const Rows rows(support::generate(Kind::exact_duplicates, 310, 33, 9), type);
    SCOPED_TRACE(name(type));
    std::vector<oracle::JoinGroup> groups = make_groups(310, 10);
    for (oracle::JoinGroup& group : groups) group.bipartite = true;
    expect_lists(rows, groups, 5, GetParam());
    if (HasFatalFailure()) return;
  }
  const Rows huge(support::generate(Kind::huge, 120, 9, 4), ElementType::f32);
  std::vector<oracle::JoinGroup> groups = make_groups(120, 5);
  for (oracle::JoinGroup& group : groups) group.bipartite = true;
  expect_lists(huge, groups, 5, GetParam());
}

// Would catch: cutoffs that ignore the initial neighbors, or that are too low because of them.
TEST_P(JoinGroups, ListsThatHaveBegunGoOnAsIfTheyHadNeverStopped) {
  for (const ElementType type : {ElementType::f32, ElementType::u8}) {
    const Rows rows(support::generate(Kind::exact_duplicates, 310, 12, 11), type);
    const std::vector<oracle::JoinGroup> first = make_groups(310, 12);
    const std::vector<oracle::JoinGroup> second = make_groups(310, 13);
    std::vector<oracle::JoinGroup> both = first;
    both.insert(both.end(), second.begin(), second.end());
    for (const Context& context : support::every_instruction_set()) {
      const std::vector<NeighborEntry> before = join(context, rows, first, 5, GetParam()).lists;
      EXPECT_EQ(join(context, rows, second, 5, GetParam(), before).lists,
                join(context, rows, both, 5, GetParam()).lists)
          << context.isa() << " " << name(type);
    }
  }
}

// f32 vectors that hold bytes are multiplied as integers; the scores of long ones exceed the exact range of
// f32.
TEST(JoinGroupsOfBytes, ListsAreTheOracles) {
  for (const std::size_t dim : {16UL, 300UL}) {
    support::Values values(200, dim);
    const Random random(6, 0);
    for (std::size_t row = 0; row < 200; ++row)
      for (std::size_t i = 0; i < dim; ++i)
        values(row, i) = static_cast<double>(random.below(row * dim + i, 256));
    const Rows rows(values, ElementType::f32);
    SCOPED_TRACE(dim);
    expect_lists(rows, make_groups(200, 7), 8, Metric::sqeuclidean);
    expect_lists(rows, make_groups(200, 7), 8, Metric::inner_product);
  }
}

TEST(JoinGroupsThreads, ListsDoNotDependOnTheNumberOfThreads) {
  const Rows rows(support::generate(Kind::exact_duplicates, 400, 6, 8), ElementType::f32);
  std::vector<oracle::JoinGroup> groups;
  for (std::uint64_t seed = 0; seed < 60; ++seed)
    for (oracle::JoinGroup& group : make_groups(400, seed)) groups.push_back(std::move(group));
  const Joined expected = join(Context::cpu({.threads = 1}), rows, groups, 7, Metric::sqeuclidean);
  for (const int threads : {2, 4})
    EXPECT_EQ(join(Context::cpu({.threads = threads}), rows, groups, 7, Metric::sqeuclidean).lists,
              expected.lists)
        << threads << " threads";
}

}  // namespace
}  // namespace nearwise
