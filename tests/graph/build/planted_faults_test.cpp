// A build whose parts are broken reports a recall that says so: every fault lies between the builder and its
// backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "core/convert.h"
#include "support/graph_cases.h"

namespace nearwise {
namespace {

using support::Kind;
using support::Rows;

constexpr std::size_t count = 1500;
constexpr std::size_t dim = 9;
constexpr std::size_t degree = 10;
constexpr double wanted = 0.95;

// What a fault may touch: the rows that are joined, the groups before they meet, the lists after it.
struct Fault {
  const char* name;
  void (*on_start)(StartJoinArgs& args) = nullptr;
  void (*on_groups)(std::vector<std::vector<std::uint32_t>>& groups,
                    std::vector<std::uint32_t>& new_counts) = nullptr;
  void (*on_lists)(std::span<NeighborEntry> lists, std::size_t list) = nullptr;
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

// The build of a test runs alone: the table of operations has no place for more than functions.
const Fault* planted = nullptr;
std::span<NeighborEntry> all_lists;
std::size_t list_entries = 0;
std::vector<float> changed_values;
std::vector<std::uint32_t> changed_order;

void change_values(StartJoinArgs& args, const auto& change) {
  changed_values.resize(args.rows.rows() * args.rows.dim());
  std::vector<double> row(args.rows.dim());
  for (std::size_t i = 0; i < args.rows.rows(); ++i) {
    row_to_double(args.rows, i, row.data());
    for (std::size_t j = 0; j < row.size(); ++j)
      changed_values[i * row.size() + j] = static_cast<float>(change(i, j, row[j]));
  }
  args.rows = RowsView(changed_values.data(), ElementType::f32, args.rows.rows(), args.rows.dim(),
                       args.rows.dim() * sizeof(float));
}

void change_order(StartJoinArgs& args, const auto& change) {
  changed_order.assign(args.order.begin(), args.order.end());
  change(changed_order);
  args.order = changed_order;
}

// Every entry by itself, and the list in order again.
void change_entries(std::span<NeighborEntry> lists, std::size_t list, const auto& change) {
  for (std::size_t place = 0; place < lists.size() / list; ++place) {
    const auto entries = lists.subspan(place * list, list);
    for (std::size_t i = 0; i < list; ++i)
      if (entries[i] != empty_entry) entries[i] = change(place, i, entries[i]);
    std::ranges::sort(entries);
  }
}

NeighborEntry with_key(NeighborEntry entry, float key) {
  return make_entry(key, number_of(entry), is_new(entry));
}

const std::array faults = std::to_array<Fault>({
    {.name = "HalfOfTheDimensions",
     .on_start =
         [](StartJoinArgs& args) {
           change_values(args,
                         [](std::size_t, std::size_t j, double value) { return j < dim / 2 ? value : 0; });
         }},
    {.name = "OneDimensionTenTimesAsLarge",
     .on_start =
         [](StartJoinArgs& args) {
           change_values(
               args, [](std::size_t, std::size_t j, double value) { return j == 3 ? value * 10 : value; });
         }},
    {.name = "SignsOnly",
     .on_start =
         [](StartJoinArgs& args) {
           change_values(args, [](std::size_t, std::size_t, double value) { return value < 0 ? -1.0 : 1.0; });
         }},
    {.name = "AShardOfZeros",
     .on_start =
         [](StartJoinArgs& args) {
           change_values(args,
                         [](std::size_t i, std::size_t, double value) { return i < count / 5 ? 0 : value; });
         }},
    {.name = "AnotherMetric", .on_start = [](StartJoinArgs& args) { args.metric = Metric::inner_product; }},
    {.name = "RowsOneFurtherThanTheirPlaces",
     .on_start =
         [](StartJoinArgs& args) {
           change_order(args,
                        [](auto& order) { std::rotate(order.begin(), order.begin() + 1, order.end()); });
         }},
    {.name = "AShardInAnotherOrder",
     .on_start =
         [](StartJoinArgs& args) {
           change_order(args, [](auto& order) { std::reverse(order.begin(), order.begin() + count / 4); });
         }},
    {.name = "ThreeOfFourGroupsLost",
     .on_groups =
         [](auto& groups, auto&) {
           for (std::size_t i = 0; i < groups.size(); ++i)
             if (i % 4 != 0) groups[i].clear();
         }},
    {.name = "GroupsCutToFourMembers",
     .on_groups =
         [](auto& groups, auto&) {
           for (auto& group : groups) group.resize(std::min<std::size_t>(group.size(), 4));
         }},
    {.name = "OnlyTheFirstMemberIsFresh",
     .on_groups = [](auto&, auto& new_counts) { std::ranges::fill(new_counts, 1U); }},
    {.name = "LargeGroupsLost",
     .on_groups =
         [](auto& groups, auto&) {
           for (auto& group : groups)
             if (group.size() > 16) group.clear();
         }},
    {.name = "MembersOfTheUpperHalfLost",
     .on_groups =
         [](auto& groups, auto&) {
           for (auto& group : groups)
             std::erase_if(group, [](std::uint32_t place) { return place >= count / 2; });
         }},
    {.name = "DistancesOfEveryThirdHalved",
     .on_lists =
         [](std::span<NeighborEntry> lists, std::size_t list) {
           change_entries(lists, list, [](std::size_t, std::size_t, NeighborEntry entry) {
             return number_of(entry) % 3 == 0 ? with_key(entry, key_of(entry) / 2) : entry;
           });
         }},
    {.name = "DistancesZero",
     .on_lists =
         [](std::span<NeighborEntry> lists, std::size_t list) {
           change_entries(lists, list,
                          [](std::size_t, std::size_t, NeighborEntry entry) { return with_key(entry, 0); });
         }},
    {.name = "OtherNumbersWithTheRightDistances",
     .on_lists =
         [](std::span<NeighborEntry> lists, std::size_t list) {
           change_entries(lists, list, [](std::size_t place, std::size_t i, NeighborEntry entry) {
             const auto other = static_cast<std::uint32_t>((place * 7 + i * 131 + 1) % count);
             return i % 4 == 0 && other != place ? make_entry(key_of(entry), other, is_new(entry)) : entry;
           });
         }},
    {.name = "TheBestOneLost",
     .on_lists =
         [](std::span<NeighborEntry> lists, std::size_t list) {
           for (std::size_t first = 0; first < lists.size(); first += list) {
             std::shift_left(lists.begin() + static_cast<std::ptrdiff_t>(first),
                             lists.begin() + static_cast<std::ptrdiff_t>(first + list), 1);
             lists[first + list - 1] = empty_entry;
           }
         }},
    {.name = "TheBestOneInEveryPlace",
     .on_lists =
         [](std::span<NeighborEntry> lists, std::size_t list) {
           for (std::size_t first = 0; first < lists.size(); first += list)
             std::ranges::fill(lists.subspan(first, list), lists[first]);
         }},
    {.name = "RowsAreTheirOwnNeighbours",
     .on_lists =
         [](std::span<NeighborEntry> lists, std::size_t list) {
           change_entries(lists, list, [](std::size_t place, std::size_t i, NeighborEntry entry) {
             return i == 0 ? make_entry(0, static_cast<std::uint32_t>(place), false) : entry;
           });
         }},
    {.name = "ListsOfTheNextRow",
     .on_lists =
         [](std::span<NeighborEntry> lists, std::size_t list) {
           std::rotate(lists.begin(), lists.begin() + static_cast<std::ptrdiff_t>(list), lists.end());
         }},
    {.name = "AShardOfListsLost",
     .on_lists = [](std::span<NeighborEntry> lists,
                    std::size_t list) { std::ranges::fill(lists.first(count / 10 * list), empty_entry); }},
});

std::unique_ptr<JoinState> start(Stream& stream, const StartJoinArgs& given) {
  StartJoinArgs args = given;
  all_lists = args.lists;
  list_entries = args.degree;
  if (planted->on_start != nullptr) planted->on_start(args);
  return cpu_backend()->ops.start_join(stream, args);
}

void join(Stream& stream, const JoinGroupsArgs& given) {
  std::vector<std::vector<std::uint32_t>> groups;
  for (std::size_t i = 0; i < given.groups.size(); ++i) {
    const auto members = given.groups.of(i);
    groups.emplace_back(members.begin(), members.end());
  }
  std::vector<std::uint32_t> new_counts(given.groups.new_counts.begin(), given.groups.new_counts.end());
  if (planted->on_groups != nullptr) planted->on_groups(groups, new_counts);
  std::vector<std::uint32_t> members;
  std::vector<std::uint64_t> ends;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    members.insert(members.end(), groups[i].begin(), groups[i].end());
    ends.push_back(members.size());
    new_counts[i] = std::min(new_counts[i], static_cast<std::uint32_t>(groups[i].size()));
  }
  cpu_backend()->ops.join_groups(stream, {given.state, {members, ends, new_counts}});
  if (planted->on_lists != nullptr) planted->on_lists(all_lists, list_entries);
}

const Backend& broken_backend() {
  static const Backend backend = [] {
    Backend changed = *cpu_backend();
    changed.ops.start_join = start;
    changed.ops.join_groups = join;
    return changed;
  }();
  return backend;
}

KnnGraph build_with(const Fault& fault, const Rows& rows) {
  planted = &fault;
  const Context context(std::make_shared<Context::State>(broken_backend(), Place{DeviceKind::cpu, 0},
                                                         ContextOptions{.threads = 2}));
  graph::Tuning tuning = support::small_partitions(degree);
  tuning.measured = 600;
  tuning.attempts = 1;
  return graph::build(context, rows, {.degree = degree, .target_recall = wanted}, tuning);
}

// By ids alone, as distances may be what is broken.
double recall_of_ids(const oracle::Answer& exact, const KnnGraph& graph) {
  std::size_t found = 0;
  for (std::size_t row = 0; row < graph.rows(); ++row) {
    const std::set<Id> ids(graph.neighbors.ids.row(row).begin(), graph.neighbors.ids.row(row).end());
    for (std::size_t i = 0; i < degree; ++i) found += ids.count(exact.ids[row * degree + i]);
  }
  return static_cast<double>(found) / static_cast<double>(graph.rows() * degree);
}

class PlantedFault : public ::testing::TestWithParam<Fault> {
 protected:
  static const Rows& rows() {
    static const Rows generated(support::generate(Kind::normal, count, dim, 11), ElementType::f32);
    return generated;
  }
  static const oracle::Answer& exact() {
    static const oracle::Answer answer = oracle::knn_graph(rows(), degree, Metric::sqeuclidean);
    return answer;
  }
};

TEST_P(PlantedFault, IsCaughtByTheReportedInterval) {
  const KnnGraph graph = build_with(GetParam(), rows());
  const double truth = recall_of_ids(exact(), graph);
  ASSERT_LT(truth, wanted) << "not a fault";
  EXPECT_FALSE(graph.report.reached);
  EXPECT_LT(graph.report.recall.high, wanted);
  EXPECT_LE(graph.report.recall.low, truth);
  EXPECT_GE(graph.report.recall.high, truth);
}

INSTANTIATE_TEST_SUITE_P(All, PlantedFault, ::testing::ValuesIn(faults),
                         [](const auto& instance) { return std::string(instance.param.name); });

// The same build with nothing planted gets there: faults are caught for what they do.
TEST_F(PlantedFault, NoneIsNone) {
  const KnnGraph graph = build_with(Fault{.name = "None"}, rows());
  EXPECT_TRUE(graph.report.reached);
  EXPECT_GE(recall_of_ids(exact(), graph), wanted);
}

}  // namespace
}  // namespace nearwise
