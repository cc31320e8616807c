// Inverted files whose lists a CUDA device keeps (Ivf::to): the CPU's answers, also after changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "backend/cuda/cuda_test.h"
#include "nearwise/ivf.h"
#include "support/graph_cases.h"
#include "support/ivf_cases.h"
#include "support/resident_cases.h"

namespace nearwise {
namespace {

using support::Kind;
using support::ResidentCase;
using support::same_bytes;

class CudaResidentLists : public gpu::CudaTest {};
class CudaResidentListsOf : public gpu::CudaTest, public testing::WithParamInterface<Metric> {};
INSTANTIATE_TEST_SUITE_P(Metrics, CudaResidentListsOf, testing::ValuesIn(support::every_metric),
                         support::metric_name);

constexpr Place device = {DeviceKind::cuda, 0};

// 240 shapes over all metrics: each is searched after to(), and after every kind of change.
TEST_P(CudaResidentListsOf, GeneratedShapesWithChangesBetween) {
  constexpr int cases = 60;
  std::size_t on_device = 0;
  for (std::uint64_t number = 0; number < cases && !HasFailure(); ++number) {
    if (!gpu::is_due(number)) continue;
    ResidentCase made(GetParam(), number);
    SCOPED_TRACE(made.describe());
    const Context context = Context::cuda(0);
    made.index.to(context);
    EXPECT_GT(made.index.device_bytes(device), 0U);
    ASSERT_TRUE(made.is_right(context, true)) << "after to()";
    made.change([&](const char* what) { ASSERT_TRUE(made.is_right(context)) << what; });
    on_device += made.index.device_bytes(device) > 0 ? 1 : 0;
    made.index.to(Context::cpu());
    EXPECT_EQ(made.index.device_bytes(device), 0U);
    EXPECT_TRUE(made.is_right(context)) << "after to(cpu)";
    EXPECT_EQ(context.memory_used(), 0U);
  }
  if (!HasFailure()) EXPECT_GT(on_device, 0U);
  RecordProperty("generated_cases", cases);
}

// What the lists on the host are read for.
TEST_F(CudaResidentLists, FiltersAndGivenVectorsAreSearchedAsBefore) {
  ResidentCase made(Metric::sqeuclidean, 1);
  const Context context = Context::cuda(0);
  made.index.to(context);
  std::vector<Id> some;
  for (Id id = 0; id < made.index.next_id(); id += 3) some.push_back(id);
  std::vector<Id> own;
  std::vector<std::size_t> offsets = {0};
  for (std::size_t query = 0; query < made.queries().rows(); ++query) {
    own.insert(own.end(), some.begin(), some.begin() + 3);
    offsets.push_back(own.size());
  }
  for (const Filter& filter :
       {Filter::allow(some), Filter::deny(some), Filter::deny_per_query(offsets, own)}) {
    IvfSearchOptions options = {.probes = made.index.lists(), .filter = filter};
    EXPECT_TRUE(same_bytes(made.index.search(support::one_thread(), made.queries(), 4, options),
                           made.index.search(context, made.queries(), 4, options)));
  }
  const IvfSearchOptions options = {.probes = 2, .rerank = made.base(), .candidates = 12};
  EXPECT_TRUE(same_bytes(made.index.search(support::one_thread(), made.queries(), 4, options),
                         made.index.search(context, made.queries(), 4, options)));
  made.index.to(Context::cpu());
}

// Kept vectors that do not fit: candidates are found on the device and re-ranked on the host.
TEST_F(CudaResidentLists, KeptVectorsThatDoNotFitStayOnTheHost) {
  const support::Problem problem = support::clustered(600, 5, 24, 31);
  const Context cpu = support::one_thread();
  Ivf index =
      Ivf::build(cpu, problem.base, {.lists = 5, .encoding = Pq{.code_bytes = 4, .bits = 4}}, std::nullopt);
  index.to(Context::cuda(0));
  const std::uint64_t whole = index.device_bytes(device);
  const std::uint64_t vectors = 600 * index.vector_bytes();
  ASSERT_GT(whole, vectors);
  const Context limited = Context::cuda(0, {.memory_limit = whole - 1 + 200'000});
  const Reservation others(*limited.state().budget, 200'000);
  const Context searching = Context::cuda(0);
  const IvfSearchOptions options = {.probes = 3, .candidates = 30};
  const Neighbors expected = index.search(cpu, problem.queries, 7, options);
  try {
    index.to(limited);
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
  }
  EXPECT_LE(index.device_bytes(device), whole - vectors);
  EXPECT_GT(index.device_bytes(device), 0U);
  EXPECT_TRUE(same_bytes(expected, index.search(searching, problem.queries, 7, options)));
  index.to(Context::cpu());
  EXPECT_EQ(limited.memory_used(), 200'000U);
}

TEST_F(CudaResidentLists, RefusesWhatDoesNotFitAndSearchesOn) {
  ResidentCase made(Metric::euclidean, 3);
  const Context limited = Context::cuda(0, {.memory_limit = 2000});
  const Error refusal = gpu::error_of([&] { made.index.to(limited); });
  EXPECT_EQ(refusal.code(), ErrorCode::out_of_memory);
  EXPECT_NE(std::string(refusal.what()).find("Ivf.to"), std::string::npos) << refusal.what();
  EXPECT_NE(std::string(refusal.what()).find("cuda:0"), std::string::npos) << refusal.what();
  EXPECT_EQ(made.index.device_bytes(device), 0U);
  EXPECT_EQ(limited.memory_used(), 0U);
  EXPECT_TRUE(made.is_right(Context::cuda(0)));
}

// Lists that have grown beyond the limit are read on the host, until there are fewer again.
TEST_F(CudaResidentLists, GrowsBeyondItsLimit) {
  const support::Problem problem = support::clustered(2000, 4, 16, 33);
  const RowsView base = problem.base;
  const Context cpu = support::one_thread();
  Ivf index = Ivf::build(cpu, base.slice(0, 300), {.lists = 4}, std::nullopt);
  // Enough for 300 rows and what copies them, not for 2000.
  const Context limited = Context::cuda(0, {.memory_limit = 230'000});
  index.to(limited);
  const Context searching = Context::cuda(0);
  const auto is_right = [&] {
    return same_bytes(index.search(cpu, problem.queries, 5, {.probes = 2}),
                      index.search(searching, problem.queries, 5, {.probes = 2}));
  };
  EXPECT_TRUE(is_right());
  EXPECT_GT(index.device_bytes(device), 0U);
  index.add(cpu, base.slice(300, 1700));
  EXPECT_TRUE(is_right());
  EXPECT_EQ(index.device_bytes(device), 0U);
  EXPECT_TRUE(is_right());
  std::vector<Id> added(1700);
  std::iota(added.begin(), added.end(), Id{300});
  index.remove(cpu, added);
  EXPECT_TRUE(is_right());
  EXPECT_GT(index.device_bytes(device), 0U);
  index.to(Context::cpu());
  EXPECT_EQ(limited.memory_used(), 0U);
}

// Scores that prove nothing: such queries are searched for in the lists on the host.
TEST_F(CudaResidentLists, MoreTiesThanRoom) {
  const support::Problem problem = support::make_problem({.kind = Kind::identical,
                                                          .rows = 150,
                                                          .queries = 3,
                                                          .dim = 5,
                                                          .base_layout = support::Layout::dense,
                                                          .seed = 4});
  const Context cpu = support::one_thread();
  Ivf index = Ivf::build(cpu, problem.base, {.lists = 2}, std::nullopt);
  index.to(Context::cuda(0));
  for (const std::size_t k : {3UL, 200UL})
    EXPECT_TRUE(same_bytes(index.search(cpu, problem.queries, k, {.probes = 2}),
                           index.search(Context::cuda(0), problem.queries, k, {.probes = 2})));
  index.to(Context::cpu());
}

TEST_F(CudaResidentLists, ManyQueriesInTilesOfLittleMemory) {
  const support::Problem problem = support::clustered(700, 90, 8, 35);
  const Context cpu = support::one_thread();
  for (const Encoding& encoding : {Encoding(Flat{}), Encoding(Pq{.code_bytes = 4, .bits = 4})}) {
    Ivf index = Ivf::build(cpu, problem.base, {.lists = 6, .encoding = encoding}, std::nullopt);
    index.to(Context::cuda(0));
    const Neighbors expected = index.search(cpu, problem.queries, 5, {.probes = 4});
    const IvfSearchOptions options = {.probes = 4};
    for (const std::uint64_t limit : {std::uint64_t{3} << 20, std::uint64_t{6} << 20}) {
      const Context context = Context::cuda(0, {.memory_limit = limit});
      EXPECT_TRUE(same_bytes(expected, index.search(context, problem.queries, 5, options)));
      EXPECT_LE(context.memory_peak(), limit);
      EXPECT_EQ(context.memory_used(), 0U);
    }
    index.to(Context::cpu());
  }
}

TEST_F(CudaResidentLists, RefusesQueriesWithNaNAndStopsWhenCancelled) {
  for (const Encoding& encoding : {Encoding(Flat{}), Encoding(Pq{.code_bytes = 2, .bits = 4})}) {
    const support::Problem problem = support::clustered(200, 3, 4, 36);
    Ivf index =
        Ivf::build(support::one_thread(), problem.base, {.lists = 2, .encoding = encoding}, std::nullopt);
    Context context = Context::cuda(0);
    index.to(context);
    std::vector<float> queries(12, 1.0F);
    queries[9] = std::numeric_limits<float>::quiet_NaN();
    const Error refusal =
        gpu::error_of([&] { index.search(context, MatrixView<const float>(queries.data(), 3, 4), 2); });
    EXPECT_EQ(refusal.code(), ErrorCode::invalid_argument) << refusal.what();
    EXPECT_NE(std::string(refusal.what()).find('2'), std::string::npos) << refusal.what();
    const Context stopped = context.with_progress({});
    stopped.cancel();
    EXPECT_EQ(gpu::error_of([&] { index.search(stopped, problem.queries, 2); }).code(), ErrorCode::cancelled);
    EXPECT_EQ(gpu::error_of([&] { index.to(stopped); }).code(), ErrorCode::cancelled);
    index.to(Context::cpu());
  }
}

// One of them makes the copy, after each change.
TEST_F(CudaResidentLists, ThreadsSearchWhileVectorsAreAdded) {
  const support::Problem problem = support::clustered(400, 3, 6, 37);
  const RowsView base = problem.base;
  const Context cpu = support::one_thread();
  Ivf index = Ivf::build(cpu, base.slice(0, 200), {.lists = 3}, std::nullopt);
  const Context context = Context::cuda(0, {.threads = 1});
  index.to(context);
  std::vector<Neighbors> states;
  {
    Ivf copy = Ivf::build(cpu, base.slice(0, 200), {.lists = 3}, std::nullopt);
    for (std::size_t added = 200;; added += 50) {
      states.push_back(copy.search(cpu, problem.queries, 4, {.probes = 3}));
      if (added == 400) break;
      copy.add(cpu, base.slice(added, 50));
    }
  }
  std::vector<std::thread> running;
  std::vector<char> right(3, 1);
  for (std::size_t i = 0; i < right.size(); ++i)
    running.emplace_back([&, i] {
      for (int repeat = 0; repeat < 6; ++repeat) {
        const Neighbors found = index.search(context, problem.queries, 4, {.probes = 3});
        if (std::ranges::none_of(states, [&](const Neighbors& state) { return same_bytes(state, found); }))
          right[i] = 0;
      }
    });
  for (std::size_t added = 200; added < 400; added += 50) index.add(cpu, base.slice(added, 50));
  for (std::thread& thread : running) thread.join();
  EXPECT_EQ(right, std::vector<char>(3, 1));
  EXPECT_TRUE(same_bytes(states.back(), index.search(context, problem.queries, 4, {.probes = 3})));
  index.to(Context::cpu());
}

}  // namespace
}  // namespace nearwise
