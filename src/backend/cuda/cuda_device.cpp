// What the driver says of itself and of its devices, and memory on a device for others than operations.
#include "nearwise/cuda_device.h"

#include <algorithm>

#include "backend/cuda/backend.h"
#include "backend/cuda/device/device_buffer.h"
#include "backend/cuda/device/device_scope.h"
#include "backend/cuda/device/staging.h"
#include "backend/cuda/kernels/rows/widen_rows.h"
#include "backend/cuda/tuning/exact_search.h"
#include "core/check.h"

namespace nearwise::gpu {
namespace {

constexpr const char* describing = "describing a device";
constexpr const char* copying = "DeviceCopy";

// "13.1" of 13010
std::string release(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string problem_of(cudaError_t status, const CudaDriver& driver) {
  // CUDA calls a driver that is missing insufficient, too.
  if (driver.driver_version == 0) return "there is no NVIDIA driver";
  if (status == cudaErrorInsufficientDriver)
    // Every driver of a major version runs the runtimes of all its minor versions.
    return fmt::format("the driver is too old: it supports CUDA {}, this build needs {}",
                       release(driver.driver_version), release(driver.runtime_version / 1000 * 1000));
  return cudaGetErrorString(status);
}

// 0 if the driver does not know it.
int attribute(cudaDeviceAttr which, int ordinal) {
  int value = 0;
  const cudaError_t status = cudaDeviceGetAttribute(&value, which, ordinal);
  ignore(status);
  return status == cudaSuccess ? value : 0;
}

}  // namespace

CudaDriver driver() {
  CudaDriver found;
  ignore(cudaDriverGetVersion(&found.driver_version));
  ignore(cudaRuntimeGetVersion(&found.runtime_version));
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  ignore(status);
  if (status != cudaSuccess) found.problem = problem_of(status, found);
  return found;
}

CudaDevice device(int ordinal) {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, ordinal), describing, ordinal);
  CudaDevice found = {
      .name = properties.name,
      .compute_capability = 10 * properties.major + properties.minor,
      .multiprocessors = properties.multiProcessorCount,
      .clock_khz = attribute(cudaDevAttrClockRate, ordinal),
      .memory_clock_khz = attribute(cudaDevAttrMemoryClockRate, ordinal),
      .memory_bus_bits = attribute(cudaDevAttrGlobalMemoryBusWidth, ordinal),
      .memory_bytes = properties.totalGlobalMem,
      .l2_cache_bytes = static_cast<std::uint64_t>(attribute(cudaDevAttrL2CacheSize, ordinal)),
      .has_memory_pools = attribute(cudaDevAttrMemoryPoolsSupported, ordinal) != 0,
      .reads_host_memory = attribute(cudaDevAttrPageableMemoryAccess, ordinal) != 0,
  };
  const DeviceScope scope(ordinal);
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &total_bytes), describing, ordinal);
  found.free_bytes = free_bytes;
  cudaFuncAttributes code{};
  const cudaError_t status = cudaFuncGetAttributes(&code, widen_rows_kernel());
  ignore(status);
  if (status == cudaSuccess) {
    found.code_version = code.binaryVersion;
    found.ptx_version = code.ptxVersion;
  }
  return found;
}

namespace {

class OwnedMemory : public DeviceMemory {
 public:
  OwnedMemory(const Context& context, DeviceBuffer<std::byte> memory)
      : context_(context), memory_(std::move(memory)) {}
  const std::byte* data() const override { return memory_.data(); }

 private:
  const Context context_;  // the memory counts in its budget
  DeviceBuffer<std::byte> memory_;
};

}  // namespace

std::unique_ptr<DeviceMemory> copy_to_device(const Context& context, std::span<const std::byte> bytes) {
  const CudaStream stream(context.state());
  const DeviceScope scope(stream.ordinal());
  DeviceBuffer<std::byte> memory(stream, bytes.size(), copying);
  {
    Staging staging(stream, copying);
    constexpr std::size_t row_bytes = 4096;
    for (std::size_t first = 0; first < bytes.size();) {
      context.state().cancel.check();
      const auto part = bytes.subspan(first, std::min(bytes.size() - first, tuning::staging_piece_bytes));
      const std::size_t width = std::min(row_bytes, part.size());
      const std::size_t rows = part.size() / width;
      staging.send({part.data(), ElementType::u8, rows, width, width}, memory.data() + first);
      first += rows * width;
    }
    stream.synchronize(copying);
  }
  return std::make_unique<OwnedMemory>(context, std::move(memory));
}

}  // namespace nearwise::gpu
