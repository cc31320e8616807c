// Kernel launches and dynamic shared memory.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <tuple>

#include "cuda_emulation/device/qualifiers.h"

namespace cuda_emulation {

// One launch: a copy of the kernel's arguments, and the function that every thread calls.
struct KernelCall {
  const void* kernel;
  void (*body)(void* call);
  std::shared_ptr<void> call;
  std::size_t call_bytes;
};

cudaError_t queue_kernel(const cudaLaunchConfig_t& config, KernelCall call);
void* dynamic_shared_memory();

template <typename T>
T* dynamic_shared() {
  return static_cast<T*>(dynamic_shared_memory());
}

template <typename... Parameters>
cudaError_t start_kernel(const cudaLaunchConfig_t& config, void (*kernel)(Parameters...),
                         Parameters... arguments) {
  struct Call {
    void (*kernel)(Parameters...);
    std::tuple<Parameters...> arguments;
  };
  return queue_kernel(config, {reinterpret_cast<const void*>(kernel),
                               [](void* call) {
                                 const auto& typed = *static_cast<const Call*>(call);
                                 std::apply(typed.kernel, typed.arguments);
                               },
                               std::make_shared<Call>(Call{kernel, {arguments...}}), sizeof(Call)});
}

}  // namespace cuda_emulation
