#include "cuda_emulation/runtime/state.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>
#include <algorithm>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "cuda_emulation/control.h"

namespace cuda_emulation {
namespace {

constexpr std::size_t default_megabytes = 512;

std::size_t number_in_environment(const char* variable, std::size_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

thread_local int device_of_thread = 0;
thread_local cudaError_t last_error = cudaSuccess;

}  // namespace

Runtime::Runtime()
    : random(88172645463325252ull + options().seed),
      allocation_to_fail(number_in_environment("CUDA_EMULATION_FAIL_ALLOCATION", 0)) {
  // What is freed changes, so that late copies find it.
  if (options().late_copies) mallopt(M_PERTURB, 0xa5);
  driver_version = static_cast<int>(number_in_environment("CUDA_EMULATION_DRIVER_VERSION", CUDART_VERSION));
  std::size_t count = number_in_environment("CUDA_EMULATION_DEVICES", 1);
  // A driver runs what was built for its own major version or an earlier one.
  if (driver_version / 1000 < CUDART_VERSION / 1000) {
    no_device_error = cudaErrorInsufficientDriver;
    count = 0;
  }
  for (std::size_t i = 0; i < count; ++i) {
    Device& device = devices.emplace_back();
    device.capacity = number_in_environment("CUDA_EMULATION_MEMORY_MB", default_megabytes) << 20;
    device.legacy.device = device.default_pool.device = static_cast<int>(i);
  }
}

// At the end of the program no device memory may be left and no finding unread. Streams, handles and pinned
// memory may: programs keep them until they end.
Runtime::~Runtime() {
  const Accounting left = accounting();
  if (options().profile) print_profile();
  if (left.device_allocations == 0 && report.empty()) return;
  if (!report.empty()) std::fprintf(stderr, "cuda_emulation: unread finding: %s\n", report.c_str());
  if (left.device_allocations != 0)
    std::fprintf(stderr, "cuda_emulation: left at exit: %s\n", to_string(left).c_str());
  std::fflush(nullptr);
  _exit(1);
}

Runtime& runtime() {
  static Runtime state;
  return state;
}

int current_device() { return device_of_thread; }

void count_call(const char* call) { ++runtime().counts.calls[call]; }

void count_synchronisation(int device) {
  Runtime& state = runtime();
  ++state.counts.synchronisations;
  const auto trim = [&](Pool& pool) {
    if (pool.device == device && pool.held_bytes > pool.release_threshold)
      pool.held_bytes = std::max<std::size_t>(pool.live_bytes, pool.release_threshold);
  };
  for (const auto& [handle, pool] : state.pools) trim(*pool);
  trim(state.devices[static_cast<std::size_t>(device)].default_pool);
}

CallCounts call_counts() {
  const RuntimeLock lock;
  return runtime().counts;
}

void reset_call_counts() {
  const RuntimeLock lock;
  runtime().counts = {};
}

cudaError_t call_error(const char* call) {
  Runtime& state = runtime();
  count_call(call);
  const auto wanted = state.calls_to_fail.find(call);
  if (wanted == state.calls_to_fail.end()) return cudaSuccess;
  const cudaError_t status = wanted->second;
  state.calls_to_fail.erase(wanted);
  return status;
}

cudaError_t device_call_error(const char* call) {
  if (runtime().devices.empty()) {
    count_call(call);
    return runtime().no_device_error;
  }
  const cudaError_t status = call_error(call);
  return status != cudaSuccess ? status : runtime().failure;
}

cudaError_t finish(cudaError_t status) {
  if (status != cudaSuccess) last_error = status;
  return status;
}

bool may_allocate() {
  Runtime& state = runtime();
  ++state.allocations_tried;
  if (state.allocation_to_fail == 0) return true;
  return --state.allocation_to_fail != 0;
}

std::string report() {
  const RuntimeLock lock;
  return runtime().report;
}

std::string take_report() {
  const RuntimeLock lock;
  runtime().failure = cudaSuccess;
  last_error = cudaSuccess;
  return std::exchange(runtime().report, {});
}

void fail_allocation(std::uint64_t count) {
  const RuntimeLock lock;
  runtime().allocation_to_fail = count;
}

std::uint64_t allocations() {
  const RuntimeLock lock;
  return runtime().allocations_tried;
}

void fail_call(const std::string& name, cudaError_t status) {
  const RuntimeLock lock;
  runtime().calls_to_fail[name] = status;
}

Accounting accounting() {
  const RuntimeLock lock;
  Runtime& state = runtime();
  static_cast<void>(run_everything());  // errors found by it are in the report
  Accounting found;
  for (const auto& [address, allocation] : state.allocations) found.device_bytes += allocation.bytes;
  found.device_allocations = state.allocations.size();
  found.pinned_allocations = state.pinned.size();
  for (const Device& device : state.devices) found.streams += device.queues.size();
  found.events = state.events.size();
  found.cublas_handles = state.cublas_handles.size();
  return found;
}

std::size_t busy_streams() {
  const RuntimeLock lock;
  std::size_t busy = 0;
  for (const Device& device : runtime().devices)
    for (const auto& [address, queue] : device.queues)
      busy += std::any_of(queue->operations.begin(), queue->operations.end(),
                          [](const Operation& operation) { return operation.work != nullptr; })
                  ? 1
                  : 0;
  return busy;
}

std::string to_string(const Accounting& accounting) {
  return fmt::format(
      "{} bytes in {} device allocations, {} pinned allocations, {} streams, {} events, {} cuBLAS handles",
      accounting.device_bytes, accounting.device_allocations, accounting.pinned_allocations,
      accounting.streams, accounting.events, accounting.cublas_handles);
}

}  // namespace cuda_emulation

using namespace cuda_emulation;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  const RuntimeLock lock;
  *count = 0;
  if (const cudaError_t status = call_error("cudaGetDeviceCount")) return finish(status);
  *count = static_cast<int>(runtime().devices.size());
  return finish(*count == 0 ? runtime().no_device_error : cudaSuccess);
}

cudaError_t cudaDriverGetVersion(int* version) {
  const RuntimeLock lock;
  if (const cudaError_t status = call_error("cudaDriverGetVersion")) return finish(status);
  *version = runtime().driver_version;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  const RuntimeLock lock;
  if (const cudaError_t status = call_error("cudaSetDevice")) return finish(status);
  if (device < 0 || device >= static_cast<int>(runtime().devices.size()))
    return finish(cudaErrorInvalidDevice);
  device_of_thread = device;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = device_of_thread;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return std::exchange(last_error, runtime().failure); }
cudaError_t cudaPeekAtLastError() { return last_error; }

}  // extern "C"
