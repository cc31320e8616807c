#include "cli/shared/exit_code.h"

#include <new>
#include <system_error>

namespace nearwise::cli {

ExitCode exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return ExitCode::usage;
    case ErrorCode::not_found: return ExitCode::no_input;
    case ErrorCode::cannot_create: return ExitCode::cannot_create;
    case ErrorCode::io: return ExitCode::io;
    case ErrorCode::corrupt: return ExitCode::data;
    case ErrorCode::out_of_memory: return ExitCode::system;
    case ErrorCode::unsupported:
    case ErrorCode::device: return ExitCode::unavailable;
    case ErrorCode::cancelled: return ExitCode::interrupted;
    case ErrorCode::internal: return ExitCode::internal;
  }
  return ExitCode::internal;
}

Failure describe(const std::exception& exception) {
  if (const auto* error = dynamic_cast<const Error*>(&exception)) {
    if (error->code() == ErrorCode::cancelled) return {ExitCode::interrupted, "cancelled", "interrupted"};
    return {exit_code_of(error->code()), std::string(name(error->code())), error->what()};
  }
  if (dynamic_cast<const InvalidData*>(&exception) != nullptr)
    return {ExitCode::data, "invalid_data", exception.what()};
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr)
    return {ExitCode::system, "out_of_memory", "the machine is out of memory; set --memory-limit"};
  if (dynamic_cast<const std::system_error*>(&exception) != nullptr)
    return {ExitCode::system, "system", exception.what()};
  return {ExitCode::internal, "internal", exception.what()};
}

}  // namespace nearwise::cli
