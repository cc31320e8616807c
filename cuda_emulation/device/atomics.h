// Atomic operations. Other threads may run before each of them.
#pragma once

#include <type_traits>

#include "cuda_emulation/device/qualifiers.h"

namespace cuda_emulation {

// Runs other threads, checks the access and propagates what fences have released. No other thread runs until
// end_atomic().
void begin_atomic(const void* address, unsigned bytes, const char* file, int line);
void end_atomic();

// Not instrumented: the access is checked as one atomic access, not as a plain read and a plain write.
template <typename T, typename Function>
__attribute__((no_sanitize("thread"), noinline)) T read_modify_write(T* address, const Function& function,
                                                                     const char* file, int line) {
  begin_atomic(address, sizeof(T), file, line);
  const T old = *address;
  *address = function(old);
  end_atomic();
  return old;
}

}  // namespace cuda_emulation

#define CUDA_EMULATION_ATOMIC(name, expression)                                                       \
  template <typename T>                                                                               \
  T name(T* address, std::type_identity_t<T> value, CUDA_EMULATION_LOCATION) {                        \
    return ::cuda_emulation::read_modify_write(                                                       \
        address, [value]([[maybe_unused]] T old) { return static_cast<T>(expression); }, file, line); \
  }
CUDA_EMULATION_ATOMIC(atomicAdd, old + value)
CUDA_EMULATION_ATOMIC(atomicSub, old - value)
CUDA_EMULATION_ATOMIC(atomicExch, value)
CUDA_EMULATION_ATOMIC(atomicMin, value < old ? value : old)
CUDA_EMULATION_ATOMIC(atomicMax, value > old ? value : old)
CUDA_EMULATION_ATOMIC(atomicAnd, old& value)
CUDA_EMULATION_ATOMIC(atomicOr, old | value)
CUDA_EMULATION_ATOMIC(atomicXor, old ^ value)
#undef CUDA_EMULATION_ATOMIC

template <typename T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value,
            CUDA_EMULATION_LOCATION) {
  return ::cuda_emulation::read_modify_write(
      address, [=](T old) { return old == expected ? value : old; }, file, line);
}
