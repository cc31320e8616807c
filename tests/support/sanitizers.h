// Whether the library runs under a sanitizer: tests may be compiled without it (preset asan-library).
#pragma once

extern "C" __attribute__((weak)) void __asan_init();
extern "C" __attribute__((weak)) void __tsan_init();

namespace nearwise::support {

inline bool is_sanitized() { return &__asan_init != nullptr || &__tsan_init != nullptr; }

}  // namespace nearwise::support
