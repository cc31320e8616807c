// What every command is given, and the options every command has.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/shared/exit_code.h"
#include "cli/shared/interrupt.h"

namespace nearwise::cli {

// Objects keep the order they are written in: people read them too.
using Json = nlohmann::ordered_json;

struct Session {
  std::vector<std::string> arguments;  // as typed, without the program's name
  bool json = false;
  bool quiet = false;
  Interrupt* interrupt = nullptr;
  std::function<ExitCode()> run;  // set by the command that was chosen
};

// One function per command: declares its options and, if it is the one chosen, sets session.run.
void add_knn(CLI::App& app, Session& session);
void add_build(CLI::App& app, Session& session);
void add_add(CLI::App& app, Session& session);
void add_remove(CLI::App& app, Session& session);
void add_merge(CLI::App& app, Session& session);
void add_measure(CLI::App& app, Session& session);
void add_search(CLI::App& app, Session& session);
void add_train(CLI::App& app, Session& session);
void add_encode(CLI::App& app, Session& session);
void add_decode(CLI::App& app, Session& session);
void add_kmeans(CLI::App& app, Session& session);
void add_graph(CLI::App& app, Session& session);
void add_changes_of_graph(CLI::App& app, Session& session);  // of add_graph()
void add_plan(CLI::App& app, Session& session);
void add_eval(CLI::App& app, Session& session);
void add_convert(CLI::App& app, Session& session);
void add_verify(CLI::App& app, Session& session);
void add_info(CLI::App& app, Session& session);

// A subcommand with --json and --quiet, and an example under its help.
CLI::App* add_command(CLI::App& app, Session& session, const std::string& name,
                      const std::string& description, const std::string& example);

// Options whose text is read by cli/shared/text.h, strictly.
CLI::Option* add_count(CLI::App& app, const std::string& option, std::size_t& value, std::size_t minimum,
                       const std::string& description);
CLI::Option* add_number(CLI::App& app, const std::string& option, double& value,
                        const std::string& description);
CLI::Option* add_bytes(CLI::App& app, const std::string& option, std::uint64_t& value,
                       const std::string& description);
// A word that `parse` accepts, which is a function throwing Error(invalid_argument) with the words it knows.
CLI::Option* add_word(CLI::App& app, const std::string& option, std::string& value,
                      const std::function<void(std::string_view)>& parse, const std::string& description);
// As typed; nothing is checked here, so that a missing file is reported with its own exit code.
CLI::Option* add_path(CLI::App& app, const std::string& option, std::filesystem::path& value,
                      const std::string& description);

// stdout carries data only. A write that fails is Error(io), at the latest in finish_output().
void print(const std::string& text);
void print(const Json& json);
void finish_output();

// A remark on stderr; nothing with --quiet or --json.
void remark(const Session& session, const std::string& text);

// "nearwise: message", or {"error": {"code", "message"}} with --json, on stderr.
void report(const Failure& failure, bool json);

}  // namespace nearwise::cli
