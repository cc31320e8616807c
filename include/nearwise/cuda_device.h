// CUDA as this process finds it: the backend, the driver, properties of a device, which operations have run
// there, and memory on it. For `nearwise gpu-check`, bug reports and tests.
//
// The backend is a shared library, libnearwise_cuda.so, unless it was linked into this one. It is loaded when
// CUDA is first asked for, by devices(), by a context on a device, or by a function of this header: from the
// file that the environment variable NEARWISE_CUDA_BACKEND names, else from set_cuda_library(), else from
// where the system looks for libraries.
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
  int runtime_version = 0;   // CUDA that the backend uses; 0: there is no backend
  std::string problem;       // why no device can be used; empty: one can
  std::string library = {};  // the backend's file; empty: it is linked in, or there is none
};
CudaDriver cuda_driver();

// The file of the backend, which is not loaded yet. Without effect once CUDA has been asked for.
void set_cuda_library(const std::string& path);

// What the driver says of a device. 0: it does not say.
struct CudaDevice {
  std::string name;
  int compute_capability = 0;  // 90 for 9.0
  // Of the code in this build that the driver has loaded for the device: 80 for sm_80, and the PTX that it
  // was made of. 0: there is none that the device can run.
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
// Of every operation that the backend implements; none without a backend.
std::vector<OperationCalls> cuda_operation_calls();

// A copy of host memory on a CUDA device, within the context's memory limit, for as long as the object lives.
class DeviceCopy {
 public:
  // Through pinned memory, as searches send vectors; complete when it returns. Throws Error(out_of_memory),
  // and Error(unsupported) for a context on the CPU.
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
