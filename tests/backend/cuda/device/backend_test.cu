#include "backend/backend.h"

#include <vector>

#include "backend/cuda/cuda_test.h"
#include "nearwise/exact.h"
#include "nearwise/machine.h"
#include "nearwise/matrix.h"

namespace nearwise::gpu {
namespace {

using CudaBackend = CudaTest;

TEST_F(CudaBackend, ContextIsOnItsDevice) {
  const int count = cuda_backend()->device_count();
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    const Context context = Context::cuda(ordinal, {.memory_limit = 1 << 20});
    EXPECT_EQ(context.place(), (Place{DeviceKind::cuda, ordinal}));
    EXPECT_EQ(context.memory_limit(), 1u << 20);
    EXPECT_EQ(Context::on("cuda:" + std::to_string(ordinal)).place(), context.place());
  }
}

TEST_F(CudaBackend, DevicesAreListedBehindTheCpu) {
  const std::vector<DeviceInfo> found = devices();
  ASSERT_EQ(found.size(), static_cast<std::size_t>(1 + cuda_backend()->device_count()));
  EXPECT_EQ(found[0].name, "cpu");
  for (std::size_t i = 1; i < found.size(); ++i) {
    EXPECT_EQ(found[i].name, "cuda:" + std::to_string(i - 1));
    EXPECT_NE(found[i].model.find("compute capability"), std::string::npos) << found[i].model;
  }
}

TEST_F(CudaBackend, InstructionSetsAreForTheCpu) {
  const Error error = error_of([] { Context::cuda(0, {.isa = "avx2"}); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_STREQ(error.what(), "context: isa of a CUDA device must be f32, tf32 or bf16, got 'avx2'");
}

TEST_F(CudaBackend, OperationsItLacksAreNamed) {
  const std::vector<float> values = {1, 2, 3, 4};
  const MatrixView<const float> rows(values.data(), 2, 2);
  const Error error = error_of([&] { range_search(Context::cuda(0), rows, rows, 1); });
  EXPECT_EQ(error.code(), ErrorCode::unsupported);
  EXPECT_NE(std::string(error.what()).find("the cuda backend does not implement it"), std::string::npos)
      << error.what();
}

// Also on a machine without any device.
TEST(CudaBackendWithoutDevice, DevicesBeyondTheLastAreRefused) {
  for (const int ordinal : {-1, cuda_backend()->device_count()}) {
    const Error error = error_of([&] { Context::cuda(ordinal); });
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("devices here: cpu"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace nearwise::gpu
