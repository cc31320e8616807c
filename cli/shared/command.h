// Commands and their options, declared on the parser. Values are read strictly (cli/shared/text.h).
//
// The type name of an option is also what shell completion offers for it (cli/completion.cpp): FILE, DIR, N,
// or the accepted words separated by '|'.
#pragma once

#include <CLI/CLI.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "cli/shared/session.h"
#include "nearwise/types.h"

namespace nearwise::cli {

template <typename Arguments>
struct Command {
  CLI::App& parser;
  Arguments& arguments;  // lives as long as the parser
};

// "index build": the names of the parser and its parents, without the program's.
std::string path_of(const CLI::App& parser);

// A subcommand with --json and --quiet; `examples` follows its help.
CLI::App& add_parser(CLI::App& parent, Session& session, const std::string& name,
                     const std::string& description, const std::string& examples);

// If this command is chosen, session.run calls `run` with its arguments.
template <typename Arguments>
Command<Arguments> add_command(CLI::App& parent, Session& session,
                               ExitCode (*run)(Session&, const Arguments&), const std::string& name,
                               const std::string& description, const std::string& examples) {
  CLI::App& parser = add_parser(parent, session, name, description, examples);
  auto arguments = std::make_shared<Arguments>();
  parser.callback([&session, &parser, arguments, run] {
    session.command = path_of(parser);
    session.run = [&session, arguments, run] { return run(session, *arguments); };
  });
  return {parser, *arguments};
}

// Options, or positional arguments if the name has no dash. A present value is the default and shown in the
// help.
CLI::Option* add_count(CLI::App& parser, const std::string& name, std::size_t& value, std::size_t minimum,
                       const std::string& description);
CLI::Option* add_count(CLI::App& parser, const std::string& name, std::optional<std::size_t>& value,
                       std::size_t minimum, const std::string& description);
CLI::Option* add_number(CLI::App& parser, const std::string& name, double& value,
                        const std::string& description);
CLI::Option* add_number(CLI::App& parser, const std::string& name, std::optional<double>& value,
                        const std::string& description);
// --memory-limit. 0 is refused, as in Python; `otherwise` is what holds without the option: "no limit".
CLI::Option* add_memory_limit(CLI::App& parser, std::uint64_t& value, const std::string& description,
                              const std::string& otherwise);
// Whether the file exists is checked by the command, which reports it with an exit code of its own.
CLI::Option* add_path(CLI::App& parser, const std::string& name, std::filesystem::path& value,
                      const std::string& description);
CLI::Option* add_paths(CLI::App& parser, const std::string& name, std::vector<std::filesystem::path>& value,
                       const std::string& description);
CLI::Option* add_folder(CLI::App& parser, const std::string& name, std::filesystem::path& value,
                        const std::string& description);

// -o, required.
CLI::Option* add_output(CLI::App& parser, std::filesystem::path& value, const std::string& description);
CLI::Option* add_seed(CLI::App& parser, std::size_t& value);
// A target recall, above 0 and at most 1.
CLI::Option* add_target_recall(CLI::App& parser, double& value, const std::string& description);
CLI::Option* add_target_recall(CLI::App& parser, std::optional<double>& value,
                               const std::string& description);

// An option that takes one of `words`; `choose` is called with its position.
CLI::Option* add_words(CLI::App& parser, const std::string& name, const std::vector<std::string>& words,
                       const std::function<void(std::size_t)>& choose, const std::string& description);

inline std::string word_of(const std::string& word) { return word; }
inline std::string word_of(std::integral auto number) { return std::to_string(number); }
template <typename Enum>
requires std::is_enum_v<Enum> std::string word_of(Enum value) { return std::string(name(value)); }

template <typename Value>
std::vector<std::string> words_of(const std::vector<Value>& values) {
  std::vector<std::string> words;
  for (const Value& value : values) words.push_back(word_of(value));
  return words;
}

// An option that takes one of a few values, by their names.
template <typename Value>
CLI::Option* add_choice(CLI::App& parser, const std::string& name, std::optional<Value>& value,
                        const std::vector<Value>& values, const std::string& description) {
  const auto choose = [&value, values](std::size_t place) { value = values[place]; };
  return add_words(parser, name, words_of(values), choose, description);
}
template <typename Value>
requires requires(const Value& value) { word_of(value); }
CLI::Option* add_choice(CLI::App& parser, const std::string& name, Value& value,
                        const std::vector<Value>& values, const std::string& description) {
  const auto choose = [&value, values](std::size_t place) { value = values[place]; };
  return add_words(parser, name, words_of(values), choose, description)->default_str(word_of(value));
}

inline const std::vector<Metric> all_metrics = {Metric::sqeuclidean, Metric::euclidean, Metric::inner_product,
                                                Metric::cosine};

}  // namespace nearwise::cli
