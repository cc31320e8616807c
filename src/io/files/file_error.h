// Failures of system calls on files, with the system's own words.
#pragma once

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "core/check.h"

namespace nearwise {

[[noreturn]] inline void fail_file(ErrorCode code, std::string_view attempt,
                                   const std::filesystem::path& path, int error) {
  fail(code, "{} {}: {}", attempt, path.native(), std::generic_category().message(error));
}

// Calls again as long as a signal interrupts. Not for close(): there the file is gone after the first call.
template <typename Call>
auto retry_interrupted(const Call& call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

}  // namespace nearwise
