// The table of operations: what `nearwise info` lists for a device.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "nearwise/context.h"
#include "nearwise/cuda_device.h"
#include "nearwise/machine.h"
#include "support/error_of.h"

namespace nearwise {
namespace {

TEST(Registry, EveryMemberOfTheTableIsListedOnce) {
  const std::vector<Operation> listed = operations(cpu_backend()->ops);
  std::set<std::string> names;
  for (const Operation& operation : listed) names.insert(operation.name);
  EXPECT_EQ(names.size(), listed.size());
  EXPECT_EQ(listed.size() * sizeof(void (*)()), sizeof(Ops));
}

TEST(Registry, ANullEntryIsListedAsMissing) {
  Ops ops = cpu_backend()->ops;
  ops.start_range = nullptr;
  const std::vector<Operation> listed = operations(ops);
  const auto start_range = std::ranges::find(listed, "start_range", &Operation::name);
  ASSERT_NE(start_range, listed.end());
  EXPECT_FALSE(start_range->implemented);
}

TEST(Registry, DevicesTellWhatTheyLack) {
  const std::vector<DeviceInfo> found = devices();
  ASSERT_FALSE(found.empty());
  for (const DeviceInfo& device : found)
    EXPECT_EQ(device.operations.size() + device.missing_operations.size(), sizeof(Ops) / sizeof(void (*)()));
  const DeviceInfo& cpu = found.front();
  EXPECT_NE(std::ranges::find(cpu.operations, "start_range"), cpu.operations.end());
  EXPECT_NE(std::ranges::find(cpu.missing_operations, "join_neighborhoods"), cpu.missing_operations.end());
}

TEST(Registry, WithoutABackendForCudaTheProblemIsSaid) {
  if (cuda_backend() != nullptr) GTEST_SKIP() << "this process has CUDA";
  EXPECT_TRUE(cuda_driver().problem.starts_with("the CUDA backend "));
  EXPECT_TRUE(cuda_driver().library.empty());
  EXPECT_NE(std::string(support::error_of([] { Context::cuda(0); }).what()).find(cuda_driver().problem),
            std::string::npos);
  EXPECT_TRUE(cuda_operation_calls().empty());
  EXPECT_EQ(support::error_of([] { cuda_device(0); }).code(), ErrorCode::unsupported);
  EXPECT_EQ(support::error_of([] { DeviceCopy(Context::cpu(), {}); }).code(), ErrorCode::unsupported);
}

}  // namespace
}  // namespace nearwise
