#include "cli/usage_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/shared/command.h"

namespace nearwise::cli {
namespace {

using Words = std::vector<std::string>;

// Our words and those of other libraries and earlier versions for them, lower case without dashes and
// underscores.
using Synonyms = std::vector<std::pair<std::string_view, std::vector<std::string_view>>>;
const Synonyms option_synonyms = {
    {"--probes", {"nprobe", "nprobes"}},
    {"--candidates", {"ef", "efsearch", "kfactor"}},
    {"--beam", {"ef", "efsearch"}},
    {"-k", {"nneighbors", "neighbors", "k", "topk", "n"}},
    {"--degree", {"nneighbors", "neighbors", "k", "m", "maxdegree"}},
    {"--lists", {"nlist", "nlists"}},
    {"--clusters", {"nclusters", "k", "ncentroids", "centroids"}},
    {"--bits", {"nbits"}},
    {"--code-bytes", {"m"}},
    {"--iterations", {"niter", "maxiter"}},
    {"--seeding", {"init"}},
    {"--threads", {"njobs", "nthreads"}},
    {"--seed", {"randomstate"}},
    {"--device", {"gpu"}},
    {"--memory-limit", {"memory"}},
    {"--target-recall", {"recall", "efconstruction", "accuracy"}},
    {"--metric", {"distance", "space", "similarity", "metrictype", "dist"}},
    {"--similarity", {"threshold", "minsimilarity"}},
    {"--radius", {"threshold", "eps", "epsilon", "maxdistance"}},
    {"--output", {"out", "o", "outfile", "save", "to"}},
    {"--work", {"workdir", "tmp", "tempdir", "scratch"}},
    {"--limit-rows", {"rows", "nrows", "limit"}},
    {"--version", {"v"}},
    {"--verbose", {"v"}},
    {"--method", {"way"}},
    {"--kind", {"codec", "indextype", "type", "factory", "indexfactory", "algorithm"}},
    {"--codec", {"kind"}},
    {"--rerank", {"refine", "rows"}},
    {"--no-rerank", {"codesonly"}},
    {"--training-rows", {"rowsperlist", "rowspercentroid"}},
    {"--min-cluster-size", {"leastrows"}},
    {"--batch-size", {"batchrows"}},
    {"--pad", {"shortrows"}},
};
const Synonyms command_synonyms = {
    {"index calibrate", {"measure", "tune"}},
    {"index search", {"query"}},
    {"index add", {"insert", "upsert"}},
    {"index remove", {"delete"}},
    {"index build", {"create", "make", "hnsw", "ivf", "ivfflat", "ivfpq", "faiss", "fit"}},
    {"kmeans", {"cluster"}},
    {"eval", {"recall", "evaluate", "compare"}},
    {"knn", {"bruteforce", "nearest", "neighbors", "nn", "exact", "flat"}},
    {"graph build", {"nndescent", "knngraph", "umap"}},
    {"dedup", {"deduplicate", "unique", "duplicates"}},
    {"info", {"show", "describe", "stats", "list", "ls", "load", "open"}},
    {"--help", {"help", "usage"}},
    {"--version", {"version"}},
};
// Arguments that are given by position.
const Synonyms positional_synonyms = {{"queries", {"query", "q", "xq"}},
                                      {"base", {"data", "dataset", "input", "vectors", "xb", "file"}}};

// Our words that may be meant.
Words find_synonyms(const Synonyms& synonyms, std::string_view typed) {
  std::string plain;
  for (const char letter : typed)
    if (letter != '-' && letter != '_')
      plain += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  Words found;
  for (const auto& [ours, theirs] : synonyms)
    if (std::ranges::count(theirs, plain) != 0) found.emplace_back(ours);
  return found;
}

// Insertions, deletions, substitutions and swaps of neighbours.
std::size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<std::size_t> before_last;
  std::vector<std::size_t> last(right.size() + 1);
  for (std::size_t j = 0; j <= right.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= left.size(); ++i) {
    std::vector<std::size_t> now(right.size() + 1, i);
    for (std::size_t j = 1; j <= right.size(); ++j) {
      const std::size_t substitution = last[j - 1] + (left[i - 1] == right[j - 1] ? 0 : 1);
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1])
        now[j] = std::min(now[j], before_last[j - 2] + 1);
    }
    before_last = std::move(last);
    last = std::move(now);
  }
  return last.back();
}

// The nearest word, if it differs in at most a third of its letters.
std::optional<std::string> nearest(std::string_view typed, const Words& words) {
  std::optional<std::string> best;
  std::size_t best_distance = 0;
  for (const std::string& word : words) {
    const std::size_t distance = edit_distance(typed, word);
    if (3 * distance > word.size() || (best && distance >= best_distance)) continue;
    best = word;
    best_distance = distance;
  }
  return best;
}

const CLI::App& chosen_parser(const CLI::App& program) {
  const CLI::App* parser = &program;
  while (!parser->get_subcommands().empty()) parser = parser->get_subcommands().front();
  return *parser;
}

std::vector<const CLI::App*> children_of(const CLI::App& parser) {
  return parser.get_subcommands(std::function<bool(const CLI::App*)>());
}

Words names_of_children(const CLI::App& parser) {
  Words names;
  for (const CLI::App* child : children_of(parser)) names.push_back(child->get_name());
  return names;
}

// Commands of all nouns with this name, as typed in full.
void find_verbs(const CLI::App& parser, const std::string& name, Words& found) {
  for (const CLI::App* child : children_of(parser)) {
    if (child->get_name() == name) found.push_back(path_of(*child));
    find_verbs(*child, name, found);
  }
}

Words all_verbs(const CLI::App& parser) {
  Words names;
  for (const CLI::App* child : children_of(parser)) {
    names.push_back(child->get_name());
    std::ranges::copy(all_verbs(*child), std::back_inserter(names));
  }
  return names;
}

// Commands of the program that wheels install, which is Python around this one, and what to install.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> commands_of_the_package = {
    {{"bench", "nearwise[bench]"}, {"gpu-check", "nearwise"}}};

std::string explain_command(const CLI::App& program, const CLI::App& parser, const std::string& typed) {
  if (&parser == &program)
    for (const auto& [command, package] : commands_of_the_package)
      if (typed == command)
        return fmt::format(
            "this program has no command '{}'; that of the Python package has: {}, see docs/start/install.md",
            command, package);
  Words meant;
  if (const auto near = nearest(typed, names_of_children(parser)))
    meant = {parser.get_parent() == nullptr ? *near : path_of(parser) + " " + *near};
  if (meant.empty()) find_verbs(program, typed, meant);
  if (meant.empty()) meant = find_synonyms(command_synonyms, typed);
  if (meant.empty())
    if (const auto near = nearest(typed, all_verbs(program))) find_verbs(program, *near, meant);
  if (meant.empty())
    return fmt::format("unknown command '{}'; expected one of {}", typed,
                       fmt::join(names_of_children(parser), ", "));
  for (std::string& command : meant) command = "'nearwise " + command + "'";
  return fmt::format("unknown command '{}'; did you mean {}?", typed, fmt::join(meant, " or "));
}

std::string explain_option(const CLI::App& parser, const std::string& typed) {
  const std::string name = typed.substr(0, typed.find('='));
  const Words meant_positionals = find_synonyms(positional_synonyms, name);
  Words options;
  std::string positionals;
  bool is_positional = false;
  for (const CLI::Option* option : parser.get_options()) {
    if (option->get_positional()) {
      positionals += " " + option->get_name();
      is_positional = is_positional || "--" + option->get_name() == name ||
                      std::ranges::count(meant_positionals, option->get_name()) != 0;
    }
    for (const std::string& word : option->get_lnames()) options.push_back("--" + word);
    for (const std::string& word : option->get_snames()) options.push_back("-" + word);
  }
  Words meant;
  for (const std::string& option : find_synonyms(option_synonyms, name))
    if (std::ranges::count(options, option) != 0) meant.push_back(option);
  if (!meant.empty())
    return fmt::format("unknown option {}; did you mean {}?", name, fmt::join(meant, " or "));
  if (is_positional)
    return fmt::format("unknown option {}; give it by position: nearwise {}{}", name, path_of(parser),
                       positionals);
  if (const auto near = nearest(name, options))
    return fmt::format("unknown option {}; did you mean {}?", name, *near);
  return fmt::format("unknown option {}", name);
}

// A word that has no place. The first guess of many is that the output is the last word.
std::string explain_word(const CLI::App& parser, const std::string& typed) {
  const CLI::Option* const output = parser.get_option_no_throw("--output");
  const bool lacks_output = output != nullptr && output->get_required() && output->count() == 0;
  return fmt::format("unexpected argument '{}'{}", typed,
                     lacks_output ? fmt::format("; an output is given by -o {}", typed) : "");
}

}  // namespace

std::string explain(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App& parser = chosen_parser(program);
  const Words rest = program.remaining(true);
  const auto first = [&rest](bool is_option) {
    return std::ranges::find_if(
        rest, [is_option](const std::string& word) { return word.starts_with('-') == is_option; });
  };
  std::string message = error.what();
  if (!children_of(parser).empty()) {
    if (first(false) != rest.end())
      message = explain_command(program, parser, *first(false));
    else
      message = fmt::format("{}expected a command: {}",
                            first(true) == rest.end() ? "" : explain_option(parser, *first(true)) + "; ",
                            fmt::join(names_of_children(parser), ", "));
  } else if (first(true) != rest.end()) {
    message = explain_option(parser, *first(true));
  } else if (!rest.empty()) {
    message = explain_word(parser, rest.front());
  }
  const std::string path = path_of(parser);
  return fmt::format("{}{} (see 'nearwise {}--help')", path.empty() ? "" : path + ": ", message,
                     path.empty() ? "" : path + " ");
}

}  // namespace nearwise::cli
