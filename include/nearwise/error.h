// The one exception type of the library.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "nearwise/export.h"

namespace NEARWISE_EXPORT nearwise {

enum class ErrorCode {
  invalid_argument,  // the caller's argument: shape, type, range, non-finite value
  not_found,         // a file that is not there
  cannot_create,     // an output that cannot be made
  io,                // reading or writing failed half-way (disk full, device error)
  corrupt,           // a file whose content contradicts itself or its checksums
  out_of_memory,     // the memory limit, or the machine, does not allow it
  unsupported,       // this device or build does not offer the operation
  device,            // an accelerator failed
  cancelled,         // Context::cancel() was called
  internal,          // a bug in nearwise
};

std::string_view name(ErrorCode code);

// what() reads "operation: what was expected, what was given".
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace nearwise
