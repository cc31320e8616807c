// Rows copied through pinned memory: halves alternate, and none is refilled before it was copied.
#include "backend/cuda/device/staging.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <numeric>
#include <vector>

#include "backend/cuda/cuda_test.h"
#include "backend/dispatch.h"
#include "support/device_array.h"

namespace nearwise {
namespace {

class CudaStaging : public gpu::CudaTest {};

// Queued work runs late on the emulated device, so a half that is refilled too early corrupts every earlier
// copy.
TEST_F(CudaStaging, PiecesArriveAsTheyWereSent) {
  constexpr std::size_t pieces = 7, rows = 5, dim = 3, stride = 4;
  const Context context = Context::cuda(0, {.threads = 2});
  const auto stream = open_stream(context);
  support::DeviceArray<float> on_device(pieces * rows * dim);
  std::vector<float> expected;
  {
    gpu::Staging staging(gpu::cuda_stream(*stream), "test");
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      std::vector<float> elements(rows * stride);
      std::iota(elements.begin(), elements.end(), static_cast<float>(100 * piece));
      staging.send(RowsView(elements.data(), ElementType::f32, rows, dim, stride * sizeof(float)),
                   reinterpret_cast<std::byte*>(on_device.data() + piece * rows * dim));
      for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t i = 0; i < dim; ++i) expected.push_back(elements[row * stride + i]);
    }
  }
  EXPECT_EQ(on_device.to_host(), expected);
}

TEST_F(CudaStaging, AreasServeAgain) {
  const Context context = Context::cuda(0);
  const auto stream = open_stream(context);
  for (int i = 0; i < 3; ++i) gpu::Staging(gpu::cuda_stream(*stream), "test");
  EXPECT_EQ(context.memory_used(), 0U) << "they are on no budget";
}

}  // namespace
}  // namespace nearwise
