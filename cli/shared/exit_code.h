// Exit codes, of sysexits.h where it has one; scripts rely on them. Listed in docs/reference/command-line.md.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

#include "nearwise/error.h"

namespace nearwise::cli {

enum class ExitCode : int {
  ok = 0,
  usage = 2,           // wrong arguments
  data = 65,           // corrupt or invalid data in a file
  no_input = 66,       // an input that does not exist
  unavailable = 69,    // this build or machine has no such device or operation
  internal = 70,       // a bug in nearwise
  system = 71,         // out of memory, or the system refused
  cannot_create = 73,  // the output cannot be created
  io = 74,             // reading or writing failed half-way: disk full, device error
  interrupted = 130,   // 128 + SIGINT
};

ExitCode exit_code_of(ErrorCode code);

// File content that is well formed but unusable (NaN, a value that does not fit); the library has no code for
// it.
class InvalidData : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Returns call(). Its Error(invalid_argument) becomes InvalidData: for calls whose other arguments were
// checked, so that only the content of a file can be invalid.
template <typename Call>
auto blame_data(const Call& call) {
  try {
    return call();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::invalid_argument) throw InvalidData(error.what());
    throw;
  }
}

struct Failure {
  ExitCode exit_code = ExitCode::internal;
  std::string code;  // the name of the library's ErrorCode, "invalid_data" or "usage"
  std::string message;
};

// Of any exception but those of the argument parser.
Failure describe(const std::exception& exception);

}  // namespace nearwise::cli
