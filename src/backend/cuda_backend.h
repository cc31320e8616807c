// The CUDA backend as the library sees it: linked in, or a shared library that is loaded when CUDA is first
// asked for (plugin/).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "nearwise/cuda_device.h"

namespace nearwise {

// Memory on a device.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual const std::byte* data() const = 0;
};

// What the functions of nearwise/cuda_device.h call.
struct CudaBackend {
  const Backend* backend;
  CudaDriver (*driver)();
  CudaDevice (*device)(int ordinal);
  std::vector<OperationCalls> (*operation_calls)();
  // The context is on a device.
  std::unique_ptr<DeviceMemory> (*copy_to_device)(const Context& context, std::span<const std::byte> bytes);
};

namespace gpu {

// Defined by the backend itself, src/backend/cuda.
const CudaBackend& cuda_functions();

}  // namespace gpu

// The CUDA backend of this process.
struct CudaLibrary {
  const CudaBackend* functions = nullptr;  // null: none
  std::string path = {};                   // of the file that was loaded; empty: none, or linked in
  std::string problem = {};                // why there is none
};
// Looks for it in the first call. By any thread.
const CudaLibrary& cuda_library();

}  // namespace nearwise
