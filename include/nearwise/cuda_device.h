// The CUDA support of this process: backend, driver, device properties, operation counts, and copies to
// device memory. For `nearwise gpu-check`, bug reports and tests.
//
// The backend is a shared library, libnearwise_cuda.so, unless it was linked into this one. It is loaded on
// first use, by devices(), a context on a CUDA device, or a function of this header: from the file named by
// the environment variable NEARWISE_CUDA_BACKEND, else by set_cuda_library(), else from the system's library
// path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/export.h"

namespace NEARWISE_EXPORT nearwise {

struct CudaDriver {
  int driver_version = 0;    // newest CUDA that the driver supports, 13010 for 13.1; 0: there is no driver
  int runtime_version = 0;   // CUDA version of the backend; 0: there is no backend
  std::string problem;       // why no device can be used; empty: one can
  std::string library = {};  // the backend's file; empty: it is linked in, or there is none
};
CudaDriver cuda_driver();

// Sets the file to load the backend from. Without effect once the backend has been looked for.
void set_cuda_library(const std::string& path);

// Properties reported by the driver; 0: not reported.
struct CudaDevice {
  std::string name;
  int compute_capability = 0;  // 90 for 9.0
  // Architecture of this build's code that the driver loaded for the device (80: sm_80), and of the PTX it
  // was compiled from. 0: the build has no code that the device can run.
  int code_version = 0;
  int ptx_version = 0;
  int multiprocessors = 0;
  int clock_khz = 0;
  int memory_clock_khz = 0;
  int memory_bus_bits = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t free_bytes = 0;
  std::uint64_t l2_cache_bytes = 0;
  bool has_memory_pools = false;
  bool reads_host_memory = false;  // kernels may read pageable memory of the host (HMM, ATS)
};
// Throws Error(device) if the driver fails, Error(unsupported) without a backend.
CudaDevice cuda_device(int ordinal);

// Calls of an operation of the CUDA backend in this process, on all devices.
struct OperationCalls {
  std::string name;  // as in DeviceInfo::operations
  std::uint64_t calls = 0;
};
// One entry per operation that the backend implements; empty without a backend.
std::vector<OperationCalls> cuda_operation_calls();

// A copy of host memory on a CUDA device, within the context's memory limit, for as long as the object lives.
class DeviceCopy {
 public:
  // Copies through pinned memory, as searches do; the copy is complete on return. Throws
  // Error(out_of_memory), and Error(unsupported) for a context on the CPU.
  DeviceCopy(const Context& context, std::span<const std::byte> bytes);
  DeviceCopy(DeviceCopy&&) noexcept;
  DeviceCopy& operator=(DeviceCopy&&) noexcept;
  ~DeviceCopy();

  const std::byte* data() const;  // on the device

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nearwise
