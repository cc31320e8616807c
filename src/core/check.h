// Argument checks and failures with a message: "operation: what was expected, got what".
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "nearwise/error.h"

namespace nearwise {

template <typename... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

// For what a caller got wrong. Never for our own mistakes: those are NEARWISE_ASSERT.
template <typename... Args>
void require(bool holds, fmt::format_string<Args...> format, Args&&... args) {
  if (!holds) [[unlikely]]
    fail(ErrorCode::invalid_argument, format, std::forward<Args>(args)...);
}

[[noreturn]] void assertion_failed(const char* expression, const char* file, int line) noexcept;

}  // namespace nearwise

// Our own mistakes, unreachable from input. Stays on in release builds: keep it out of inner loops.
#define NEARWISE_ASSERT(expression) \
  ((expression) ? static_cast<void>(0) : ::nearwise::assertion_failed(#expression, __FILE__, __LINE__))
