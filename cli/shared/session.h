// State of one run of the program, and its output streams: data on stdout, everything else on stderr.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/shared/exit_code.h"
#include "cli/shared/interrupt.h"

namespace nearwise::cli {

using Json = nlohmann::ordered_json;  // keeps the order of insertion, for human readers

struct Session {
  std::vector<std::string> arguments;  // as typed, without the program's name
  bool json = false;
  bool quiet = false;
  Interrupt* interrupt = nullptr;
  std::string command;            // "index build"
  std::function<ExitCode()> run;  // set by the parser of the chosen command
};

// Throws Error(invalid_argument) with the command's name in front: "index search: k must be ...".
template <typename... Values>
[[noreturn]] void refuse(const Session& session, fmt::format_string<Values...> format, Values&&... values) {
  throw Error(ErrorCode::invalid_argument,
              session.command + ": " + fmt::format(format, std::forward<Values>(values)...));
}

// Write to stdout. A failed write is Error(io), at the latest in finish_output().
void print(const std::string& text);
void print(const Json& json);
void finish_output();

// A line on stderr; nothing with --quiet or --json.
void remark(const Session& session, const std::string& text);

// The last word of a command that wrote a file: `json` on stdout with --json, else `text` as a remark.
void conclude(const Session& session, const Json& json, const std::string& text);

// "nearwise: message", or {"error": {"code", "message"}} with --json, on stderr.
void report(const Failure& failure, bool json);

}  // namespace nearwise::cli
