// A backend without CUDA: its device is the host's memory. It calls the library as the CUDA backend does.
#include <atomic>
#include <vector>

#include "backend/context_state.h"
#include "backend/cuda_backend.h"
#include "core/check.h"
#include "core/memory.h"

namespace nearwise {
namespace {

class HostMemory : public DeviceMemory {
 public:
  HostMemory(const Context& context, std::span<const std::byte> bytes)
      : context_(context), memory_(*context.state().budget, bytes.size()) {
    std::atomic<std::size_t> copied = 0;
    context.state().threads->for_each(bytes.size(), [&](std::size_t index) {
      memory_[index] = bytes[index];
      ++copied;
    });
    NEARWISE_ASSERT(copied == bytes.size());
  }
  const std::byte* data() const override { return memory_.data(); }

 private:
  const Context context_;
  Buffer<std::byte> memory_;
};

std::unique_ptr<DeviceMemory> copy(const Context& context, std::span<const std::byte> bytes) {
  context.state().cancel.check();
  return std::make_unique<HostMemory>(context, bytes);
}

CudaDevice describe(int ordinal) {
  fail(ErrorCode::device, "describing {}: there is none", name(Place{DeviceKind::cuda, ordinal}));
}

const Backend backend = {
    .name = "cuda",
    .kind = DeviceKind::cuda,
    .device_count = [] { return 1; },
    .device_model = [](int) -> std::string { return "the host"; },
    .check_options = [](const ContextOptions&) {},
    .open = [](Context::State&) -> std::unique_ptr<Stream> { return nullptr; },
    .ops = {},
};

}  // namespace

const CudaBackend& gpu::cuda_functions() {
  static constexpr CudaBackend functions = {
      .backend = &backend,
      .driver = [] { return CudaDriver{.driver_version = 13000, .problem = ""}; },
      .device = describe,
      .operation_calls = [] { return std::vector<OperationCalls>(); },
      .copy_to_device = copy,
  };
  return functions;
}

}  // namespace nearwise
