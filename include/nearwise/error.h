// The library's only exception type.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "nearwise/export.h"

namespace NEARWISE_EXPORT nearwise {

enum class ErrorCode {
  invalid_argument,  // shape, type, range or a non-finite value
  not_found,         // no such file
  cannot_create,     // an output cannot be created
  io,                // reading or writing failed (disk full, hardware error)
  corrupt,           // a file contradicts itself or its checksums
  out_of_memory,     // beyond the memory limit, or the machine's memory
  unsupported,       // not available on this device or in this build
  device,            // a CUDA device failed
  cancelled,         // Context::cancel() was called
  internal,          // a bug in nearwise
};

std::string_view name(ErrorCode code);

// what() names operation, expectation and value: "Ivf.search: k must be at least 1, got 0".
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace nearwise
