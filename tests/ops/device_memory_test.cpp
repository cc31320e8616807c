// What a build without devices says of them, and an index that moves between contexts of the CPU.
#include "nearwise/device_memory.h"

#include <gtest/gtest.h>

#include <string>

#include "nearwise/error.h"
#include "nearwise/exact.h"
#include "support/cancelling.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

TEST(DeviceMemory, HostMemoryIsTheHosts) {
  const int element = 0;
  EXPECT_EQ(place_of(&element), Place{});
}

TEST(DeviceMemory, TheCpuHasNoStreamsToShare) {
  const Context context = Context::cpu();
  for (const auto& error : {support::error_from([&] { wait_for_stream(context, 1); }),
                            support::error_from([&] { ExchangeStream(context).wait(); })}) {
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), ErrorCode::unsupported) << error->what();
  }
}

TEST(DeviceMemory, DevicesThatAreHereAreListed) {
  for (const char* device : {"abacus", "cuda:63"}) {
    const auto error = support::error_from([&] { Context::on(device); });
    ASSERT_TRUE(error.has_value());
    EXPECT_NE(std::string(error->what()).find("devices here: cpu"), std::string::npos) << error->what();
  }
}

TEST(DeviceMemory, RowsOnADeviceAreNotTheCpus) {
  const float element = 0;
  const RowsView rows(&element, ElementType::f32, 1, 1, sizeof(float), {DeviceKind::cuda, 2});
  const auto error = support::error_from([&] { Exact::prepare(Context::cpu(), rows); });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), ErrorCode::invalid_argument);
  EXPECT_NE(std::string(error->what()).find("the base rows are on cuda:2 and the work is on cpu"),
            std::string::npos)
      << error->what();
}

TEST(DeviceMemory, AnIndexCountsOnTheContextItWasMovedTo) {
  const support::Problem problem = support::make_problem({.rows = 200, .queries = 9, .dim = 12, .seed = 3});
  const Context first = Context::cpu(), second = Context::cpu();
  Exact index = Exact::prepare(first, problem.base, {.metric = Metric::cosine});
  const oracle::Answer expected = support::as_expected(index.search(first, problem.queries, 4));
  index = index.to(second);
  EXPECT_EQ(first.memory_used(), 0U);
  EXPECT_GT(second.memory_used(), 0U);
  EXPECT_EQ(index.metric(), Metric::cosine);
  EXPECT_EQ(index.place(), Place{});
  EXPECT_TRUE(support::same(expected, index.search(second, problem.queries, 4)));
}

}  // namespace
}  // namespace nearwise
