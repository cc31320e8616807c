// Exit codes: scripts rely on them, docs/command-line.md lists them. Numbers of sysexits.h where it has one.
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
  no_input = 66,       // an input that is not there
  unavailable = 69,    // this build or machine has no such device or operation
  internal = 70,       // a mistake of ours
  system = 71,         // out of memory, or the system refused
  cannot_create = 73,  // the output cannot be made
  io = 74,             // reading or writing failed half-way: disk full, device error
  interrupted = 130,   // 128 + SIGINT
};

ExitCode exit_code_of(ErrorCode code);

// A failure the command line finds itself and the library has no code for: file content that is well formed and
// still unusable (not a finite number, a value that does not fit).
class InvalidData : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What the library refuses as an invalid argument inside `call` is the content of a file: InvalidData. For calls
// whose other arguments have been checked.
template <typename Call>
auto blame_data(const Call& call) {
  try {
    return call();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::invalid_argument) throw InvalidData(error.what());
    throw;
  }
}

// What is said about a failure, and how the process ends.
struct Failure {
  ExitCode exit_code = ExitCode::internal;
  std::string code;  // for programs: the name of the library's ErrorCode, "invalid_data" or "usage"
  std::string message;
};

// Of any exception that can reach main(), except those of the argument parser.
Failure describe(const std::exception& exception);

}  // namespace nearwise::cli
