// The functions of the backend's table, cuda_functions().
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "backend/cuda_backend.h"

namespace nearwise::gpu {

const Backend& backend();
CudaDriver driver();
CudaDevice device(int ordinal);
std::vector<OperationCalls> operation_calls();
std::unique_ptr<DeviceMemory> copy_to_device(const Context& context, std::span<const std::byte> bytes);

}  // namespace nearwise::gpu
