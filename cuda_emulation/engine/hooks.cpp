// Callbacks of code compiled with -fsanitize=thread, linked instead of ThreadSanitizer's runtime in the check
// build: the instrumentation is the same, the checks are for CUDA's memory model.
//
// The compiler copies structs such as float4 with memcpy, hence the link options
// -Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset.
#include <cstddef>
#include <cstdint>

#include "cuda_emulation/engine/access.h"

using cuda_emulation::hooked_access;
using cuda_emulation::hooked_range;

namespace {

void access(const void* address, std::size_t bytes, bool writes, const void* code) {
  hooked_access({.address = static_cast<const char*>(address),
                 .bytes = bytes,
                 .reads = !writes,
                 .writes = writes,
                 .code = code});
}

}  // namespace

#define CODE __builtin_return_address(0)
#define HOOKS_OF_SIZE(bytes)                                                                           \
  extern "C" void __tsan_read##bytes(void* address) { access(address, bytes, false, CODE); }           \
  extern "C" void __tsan_write##bytes(void* address) { access(address, bytes, true, CODE); }           \
  extern "C" void __tsan_unaligned_read##bytes(void* address) { access(address, bytes, false, CODE); } \
  extern "C" void __tsan_unaligned_write##bytes(void* address) { access(address, bytes, true, CODE); } \
  extern "C" void __tsan_read_write##bytes(void* address) {                                            \
    access(address, bytes, false, CODE);                                                               \
    access(address, bytes, true, CODE);                                                                \
  }                                                                                                    \
  extern "C" void __tsan_unaligned_read_write##bytes(void* address) {                                  \
    access(address, bytes, false, CODE);                                                               \
    access(address, bytes, true, CODE);                                                                \
  }
HOOKS_OF_SIZE(1)
HOOKS_OF_SIZE(2)
HOOKS_OF_SIZE(4)
HOOKS_OF_SIZE(8)
HOOKS_OF_SIZE(16)

extern "C" void __tsan_init() { cuda_emulation::register_hooks(); }
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}
extern "C" void __tsan_vptr_update(void**, void*) {}
extern "C" void __tsan_vptr_read(void**) {}
extern "C" void __tsan_read_range(void* address, std::size_t bytes) {
  hooked_range(address, bytes, false, CODE);
}
extern "C" void __tsan_write_range(void* address, std::size_t bytes) {
  hooked_range(address, bytes, true, CODE);
}

extern "C" void* __real_memcpy(void*, const void*, std::size_t);
extern "C" void* __real_memmove(void*, const void*, std::size_t);
extern "C" void* __real_memset(void*, int, std::size_t);

extern "C" void* __wrap_memcpy(void* to, const void* from, std::size_t bytes) {
  hooked_range(from, bytes, false, CODE);
  hooked_range(to, bytes, true, CODE);
  return __real_memcpy(to, from, bytes);
}
extern "C" void* __wrap_memmove(void* to, const void* from, std::size_t bytes) {
  hooked_range(from, bytes, false, CODE);
  hooked_range(to, bytes, true, CODE);
  return __real_memmove(to, from, bytes);
}
extern "C" void* __wrap_memset(void* to, int value, std::size_t bytes) {
  hooked_range(to, bytes, true, CODE);
  return __real_memset(to, value, bytes);
}
extern "C" void* __tsan_memcpy(void* to, const void* from, std::size_t bytes) {
  return __wrap_memcpy(to, from, bytes);
}
extern "C" void* __tsan_memmove(void* to, const void* from, std::size_t bytes) {
  return __wrap_memmove(to, from, bytes);
}
extern "C" void* __tsan_memset(void* to, int value, std::size_t bytes) {
  return __wrap_memset(to, value, bytes);
}

// Host code in an instrumented file may use std::atomic and shared_ptr: plain atomics, unchecked.
#define SEQUENTIAL __ATOMIC_SEQ_CST
#define ATOMICS_OF_SIZE(bits, T)                                                                            \
  extern "C" T __tsan_atomic##bits##_load(const volatile T* at, int) {                                      \
    return __atomic_load_n(at, SEQUENTIAL);                                                                 \
  }                                                                                                         \
  extern "C" void __tsan_atomic##bits##_store(volatile T* at, T value, int) {                               \
    __atomic_store_n(at, value, SEQUENTIAL);                                                                \
  }                                                                                                         \
  extern "C" T __tsan_atomic##bits##_exchange(volatile T* at, T value, int) {                               \
    return __atomic_exchange_n(at, value, SEQUENTIAL);                                                      \
  }                                                                                                         \
  extern "C" T __tsan_atomic##bits##_fetch_add(volatile T* at, T value, int) {                              \
    return __atomic_fetch_add(at, value, SEQUENTIAL);                                                       \
  }                                                                                                         \
  extern "C" T __tsan_atomic##bits##_fetch_sub(volatile T* at, T value, int) {                              \
    return __atomic_fetch_sub(at, value, SEQUENTIAL);                                                       \
  }                                                                                                         \
  extern "C" T __tsan_atomic##bits##_fetch_and(volatile T* at, T value, int) {                              \
    return __atomic_fetch_and(at, value, SEQUENTIAL);                                                       \
  }                                                                                                         \
  extern "C" T __tsan_atomic##bits##_fetch_or(volatile T* at, T value, int) {                               \
    return __atomic_fetch_or(at, value, SEQUENTIAL);                                                        \
  }                                                                                                         \
  extern "C" T __tsan_atomic##bits##_fetch_xor(volatile T* at, T value, int) {                              \
    return __atomic_fetch_xor(at, value, SEQUENTIAL);                                                       \
  }                                                                                                         \
  extern "C" T __tsan_atomic##bits##_compare_exchange_val(volatile T* at, T old, T value, int, int) {       \
    __atomic_compare_exchange_n(at, &old, value, false, SEQUENTIAL, SEQUENTIAL);                            \
    return old;                                                                                             \
  }                                                                                                         \
  extern "C" int __tsan_atomic##bits##_compare_exchange_strong(volatile T* at, T* old, T value, int, int) { \
    return __atomic_compare_exchange_n(at, old, value, false, SEQUENTIAL, SEQUENTIAL);                      \
  }                                                                                                         \
  extern "C" int __tsan_atomic##bits##_compare_exchange_weak(volatile T* at, T* old, T value, int, int) {   \
    return __atomic_compare_exchange_n(at, old, value, false, SEQUENTIAL, SEQUENTIAL);                      \
  }
ATOMICS_OF_SIZE(8, std::uint8_t)
ATOMICS_OF_SIZE(16, std::uint16_t)
ATOMICS_OF_SIZE(32, std::uint32_t)
ATOMICS_OF_SIZE(64, std::uint64_t)
extern "C" void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(SEQUENTIAL); }
extern "C" void __tsan_atomic_signal_fence(int) {}
