#include "cli/shared/command.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/shared/text.h"

namespace nearwise::cli {
namespace {

// Passes the text to `parse`; what that throws is reported with the option's name.
template <typename Parse>
CLI::Option* add_parsed(CLI::App& parser, const std::string& name, const std::string& type, Parse parse,
                        const std::string& description) {
  const std::string shown = name.substr(name.find(',') + 1);  // "-o,--output": the long name
  const auto read = [parse, shown](const std::string& text) {
    try {
      parse(text);
    } catch (const Error& error) {
      throw CLI::ValidationError(fmt::format("{} must be {}, got '{}'", shown, error.what(), text));
    }
  };
  return parser.add_option_function<std::string>(name, read, description)->type_name(type);
}

// Words of other libraries for values. The l2 of Faiss, hnswlib and usearch is squared, too.
struct Synonym {
  std::string_view theirs;  // in small letters
  std::string_view ours;
};
constexpr std::array synonyms = {Synonym{"l2", "sqeuclidean"},      Synonym{"l2sq", "sqeuclidean"},
                                 Synonym{"ip", "inner_product"},    Synonym{"dot", "inner_product"},
                                 Synonym{"cos", "cosine"},          Synonym{"angular", "cosine"},
                                 Synonym{"euclid", "euclidean"},    Synonym{"dot_product", "inner_product"},
                                 Synonym{"hnsw", "graph"},          Synonym{"nsg", "graph"},
                                 Synonym{"ivfflat", "ivf"},         Synonym{"ivfpq", "ivf"},
                                 Synonym{"ivf_flat", "ivf"},        Synonym{"ivf_pq", "ivf"},
                                 Synonym{"k-means++", "plus_plus"}, Synonym{"kmeans++", "plus_plus"}};

// Our word; a word that is ours but for its case, too. Empty if there is none.
std::string meant_word(const std::vector<std::string>& words, const std::string& typed) {
  std::string small = lower_case(typed);
  if (const auto* const found = std::ranges::find(synonyms, small, &Synonym::theirs); found != synonyms.end())
    small = found->ours;
  return std::ranges::count(words, small) == 0 ? "" : small;
}

}  // namespace

std::string path_of(const CLI::App& parser) {
  if (parser.get_parent() == nullptr) return "";
  const std::string parent = path_of(*parser.get_parent());
  return parent.empty() ? parser.get_name() : parent + " " + parser.get_name();
}

CLI::App& add_parser(CLI::App& parent, Session& session, const std::string& name,
                     const std::string& description, const std::string& examples) {
  CLI::App* const parser = parent.add_subcommand(name, description);
  parser->footer("Example:\n" + examples);
  parser->add_flag("--json", session.json, "Print the result, and errors, as JSON");
  parser->add_flag("-q,--quiet", session.quiet, "No progress and no messages other than errors");
  return *parser;
}

CLI::Option* add_count(CLI::App& parser, const std::string& name, std::size_t& value, std::size_t minimum,
                       const std::string& description) {
  const auto parse = [&value, minimum](const std::string& text) { value = parse_count(text, minimum); };
  CLI::Option* const option = add_parsed(parser, name, "N", parse, description);
  return name.starts_with('-') ? option->default_str(std::to_string(value)) : option;
}

CLI::Option* add_count(CLI::App& parser, const std::string& name, std::optional<std::size_t>& value,
                       std::size_t minimum, const std::string& description) {
  const auto parse = [&value, minimum](const std::string& text) { value = parse_count(text, minimum); };
  return add_parsed(parser, name, "N", parse, description);
}

CLI::Option* add_number(CLI::App& parser, const std::string& name, double& value,
                        const std::string& description) {
  const auto parse = [&value](const std::string& text) { value = parse_number(text); };
  return add_parsed(parser, name, "X", parse, description)->default_str(fmt::format("{}", value));
}

CLI::Option* add_number(CLI::App& parser, const std::string& name, std::optional<double>& value,
                        const std::string& description) {
  const auto parse = [&value](const std::string& text) { value = parse_number(text); };
  return add_parsed(parser, name, "X", parse, description);
}

CLI::Option* add_memory_limit(CLI::App& parser, std::uint64_t& value, const std::string& description,
                              const std::string& otherwise) {
  const auto parse = [&value, otherwise](const std::string& text) {
    value = parse_bytes(text);
    if (value == 0)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("at least 1 byte (leave the option out for {})", otherwise));
  };
  return add_parsed(parser, "--memory-limit", "SIZE", parse,
                    fmt::format("{} (default: {})", description, otherwise));
}

CLI::Option* add_path(CLI::App& parser, const std::string& name, std::filesystem::path& value,
                      const std::string& description) {
  const auto parse = [&value](const std::string& text) { value = text; };
  return add_parsed(parser, name, "FILE", parse, description);
}

CLI::Option* add_paths(CLI::App& parser, const std::string& name, std::vector<std::filesystem::path>& value,
                       const std::string& description) {
  const auto read = [&value](const std::vector<std::string>& texts) {
    value.assign(texts.begin(), texts.end());
  };
  return parser.add_option_function<std::vector<std::string>>(name, read, description)->type_name("FILE");
}

CLI::Option* add_folder(CLI::App& parser, const std::string& name, std::filesystem::path& value,
                        const std::string& description) {
  return add_path(parser, name, value, description)->type_name("DIR");
}

CLI::Option* add_output(CLI::App& parser, std::filesystem::path& value, const std::string& description) {
  return add_path(parser, "-o,--output", value, description)->required();
}

CLI::Option* add_seed(CLI::App& parser, std::size_t& value) {
  return add_count(parser, "--seed", value, 0, "Seed of the random numbers");
}

CLI::Option* add_target_recall(CLI::App& parser, double& value, const std::string& description) {
  const auto parse = [&value](const std::string& text) { value = parse_share(text); };
  return add_parsed(parser, "--target-recall", "X", parse, description)
      ->default_str(fmt::format("{}", value));
}

CLI::Option* add_target_recall(CLI::App& parser, std::optional<double>& value,
                               const std::string& description) {
  const auto parse = [&value](const std::string& text) { value = parse_share(text); };
  return add_parsed(parser, "--target-recall", "X", parse, description);
}

CLI::Option* add_words(CLI::App& parser, const std::string& name, const std::vector<std::string>& words,
                       const std::function<void(std::size_t)>& choose, const std::string& description) {
  const auto parse = [words, choose](const std::string& text) {
    const auto found = std::ranges::find(words, text);
    if (found == words.end()) {
      const std::string meant = meant_word(words, text);
      throw Error(ErrorCode::invalid_argument, fmt::format("one of {}{}", fmt::join(words, ", "),
                                                           meant.empty() ? "" : " (here " + meant + ")"));
    }
    choose(static_cast<std::size_t>(found - words.begin()));
  };
  return add_parsed(parser, name, fmt::format("{}", fmt::join(words, "|")), parse, description);
}

}  // namespace nearwise::cli
