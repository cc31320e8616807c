#include "nearwise/error.h"

#include <cstdio>

#include "core/check.h"

namespace nearwise {

std::string_view name(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::not_found: return "not_found";
    case ErrorCode::cannot_create: return "cannot_create";
    case ErrorCode::io: return "io";
    case ErrorCode::corrupt: return "corrupt";
    case ErrorCode::out_of_memory: return "out_of_memory";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::device: return "device";
    case ErrorCode::cancelled: return "cancelled";
    case ErrorCode::internal: return "internal";
  }
  return "unknown";
}

void assertion_failed(const char* expression, const char* file, int line) noexcept {
  std::fprintf(stderr, "nearwise: internal error: %s does not hold (%s:%d)\n", expression, file, line);
  std::abort();
}

}  // namespace nearwise
