// Replaces the CUDA backend in builds without CUDA.
#include "backend/backend.h"
#include "core/check.h"
#include "nearwise/cuda_device.h"

namespace nearwise {

const Backend* cuda_backend() { return nullptr; }

CudaDriver cuda_driver() { return {.problem = "this build has no CUDA backend"}; }

CudaDevice cuda_device(int ordinal) {
  fail(ErrorCode::unsupported, "cuda_device: cuda:{} is not available: {}", ordinal, cuda_driver().problem);
}

std::vector<OperationCalls> cuda_operation_calls() { return {}; }

struct DeviceCopy::State {};

DeviceCopy::DeviceCopy(const Context& context, std::span<const std::byte>) {
  fail(ErrorCode::unsupported, "DeviceCopy: expected a context on a CUDA device, got {}",
       name(context.place()));
}
DeviceCopy::DeviceCopy(DeviceCopy&&) noexcept = default;
DeviceCopy& DeviceCopy::operator=(DeviceCopy&&) noexcept = default;
DeviceCopy::~DeviceCopy() = default;

const std::byte* DeviceCopy::data() const { return nullptr; }

}  // namespace nearwise
