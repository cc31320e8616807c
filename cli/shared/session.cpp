#include "cli/shared/session.h"

#include <fmt/format.h>

#include <cstdio>

#include "cli/shared/text.h"

namespace nearwise::cli {
namespace {

// A file name need not be UTF-8; JSON must be.
std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

template <typename Parse>
CLI::Option* add_parsed(CLI::App& app, const std::string& option, const std::string& type, Parse parse,
                        const std::string& description) {
  const auto read = [parse, option](const std::string& text) {
    try {
      parse(text);
    } catch (const Error& error) {
      throw CLI::ValidationError(option, error.what());
    }
  };
  return app.add_option_function<std::string>(option, read, description)->type_name(type);
}

}  // namespace

CLI::App* add_command(CLI::App& app, Session& session, const std::string& name,
                      const std::string& description, const std::string& example) {
  CLI::App* const command = app.add_subcommand(name, description);
  command->footer("Example:\n" + example);
  command->add_flag("--json", session.json, "Print results, and errors, as JSON");
  command->add_flag("-q,--quiet", session.quiet, "No progress and no remarks");
  return command;
}

CLI::Option* add_count(CLI::App& app, const std::string& option, std::size_t& value, std::size_t minimum,
                       const std::string& description) {
  return add_parsed(
      app, option, "N", [&value, minimum](const std::string& text) { value = parse_count(text, minimum); },
      description);
}

CLI::Option* add_number(CLI::App& app, const std::string& option, double& value,
                        const std::string& description) {
  return add_parsed(
      app, option, "X", [&value](const std::string& text) { value = parse_number(text); }, description);
}

CLI::Option* add_bytes(CLI::App& app, const std::string& option, std::uint64_t& value,
                       const std::string& description) {
  return add_parsed(
      app, option, "SIZE", [&value](const std::string& text) { value = parse_bytes(text); }, description);
}

CLI::Option* add_word(CLI::App& app, const std::string& option, std::string& value,
                      const std::function<void(std::string_view)>& parse, const std::string& description) {
  const auto read = [&value, parse](const std::string& text) {
    parse(text);
    value = text;
  };
  return add_parsed(app, option, "NAME", read, description);
}

CLI::Option* add_path(CLI::App& app, const std::string& option, std::filesystem::path& value,
                      const std::string& description) {
  return add_parsed(
      app, option, "FILE", [&value](const std::string& text) { value = text; }, description);
}

void print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size())
    throw Error(ErrorCode::io, "standard output: cannot be written to");
}

void print(const Json& json) { print(dump(json, 2)); }

void finish_output() {
  if (std::fflush(stdout) != 0) throw Error(ErrorCode::io, "standard output: cannot be written to");
}

void remark(const Session& session, const std::string& text) {
  if (session.quiet || session.json) return;
  fmt::print(stderr, "nearwise: {}\n", text);
}

void report(const Failure& failure, bool json) {
  // stderr may be closed or full; the exit code still tells.
  const std::string text =
      json ? dump(Json{{"error", {{"code", failure.code}, {"message", failure.message}}}}, -1)
           : fmt::format("nearwise: {}\n", failure.message);
  static_cast<void>(std::fputs(text.c_str(), stderr));
}

}  // namespace nearwise::cli
