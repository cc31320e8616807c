#include "nearwise/cuda_device.h"

#include "backend/cuda_backend.h"
#include "core/check.h"

namespace nearwise {

const Backend* cuda_backend() {
  const CudaBackend* const functions = cuda_library().functions;
  return functions == nullptr ? nullptr : functions->backend;
}

CudaDriver cuda_driver() {
  const CudaLibrary& library = cuda_library();
  if (library.functions == nullptr) return {.problem = library.problem};
  CudaDriver found = library.functions->driver();
  found.library = library.path;
  return found;
}

CudaDevice cuda_device(int ordinal) {
  const CudaLibrary& library = cuda_library();
  if (library.functions == nullptr)
    fail(ErrorCode::unsupported, "cuda_device: cuda:{} is not available: {}", ordinal, library.problem);
  return library.functions->device(ordinal);
}

std::vector<OperationCalls> cuda_operation_calls() {
  const CudaBackend* const functions = cuda_library().functions;
  return functions == nullptr ? std::vector<OperationCalls>() : functions->operation_calls();
}

struct DeviceCopy::State {
  std::unique_ptr<DeviceMemory> memory;
};

DeviceCopy::DeviceCopy(const Context& context, std::span<const std::byte> bytes) {
  if (context.place().kind != DeviceKind::cuda)
    fail(ErrorCode::unsupported, "DeviceCopy: expected a context on a CUDA device, got {}",
         name(context.place()));
  state_ = std::make_unique<State>(State{cuda_library().functions->copy_to_device(context, bytes)});
}

DeviceCopy::DeviceCopy(DeviceCopy&&) noexcept = default;
DeviceCopy& DeviceCopy::operator=(DeviceCopy&&) noexcept = default;
DeviceCopy::~DeviceCopy() = default;

const std::byte* DeviceCopy::data() const { return state_->memory->data(); }

}  // namespace nearwise
