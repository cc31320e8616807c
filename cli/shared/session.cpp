#include "cli/shared/session.h"

#include <cstdio>

namespace nearwise::cli {
namespace {

// File names need not be UTF-8, JSON must be.
std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

[[noreturn]] void refuse_output() {
  throw Error(ErrorCode::io, "standard output: write failed (closed, or the disk is full)");
}

}  // namespace

void print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) refuse_output();
}

void print(const Json& json) { print(dump(json, 2)); }

void finish_output() {
  if (std::fflush(stdout) != 0) refuse_output();
}

void remark(const Session& session, const std::string& text) {
  if (session.quiet || session.json) return;
  fmt::print(stderr, "nearwise: {}\n", text);
}

void conclude(const Session& session, const Json& json, const std::string& text) {
  if (session.json)
    print(json);
  else
    remark(session, text);
}

void report(const Failure& failure, bool json) {
  const std::string text =
      json ? dump(Json{{"error", {{"code", failure.code}, {"message", failure.message}}}}, -1)
           : fmt::format("nearwise: {}\n", failure.message);
  // stderr may be closed or full; the exit code still says what happened.
  static_cast<void>(std::fputs(text.c_str(), stderr));
}

}  // namespace nearwise::cli
