// nearwise completion: scripts for the completion of bash, zsh and fish, generated from the parser.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/shared/command.h"

namespace nearwise::cli {
namespace {

// What the shell offers for a value.
struct Values {
  enum class Kind : std::uint8_t { text, files, folders, words };
  Kind kind = Kind::text;
  std::string words;  // separated by spaces
};

struct Option {
  std::vector<std::string> short_names;  // without dashes
  std::vector<std::string> long_names;
  std::string description;
  bool takes_value = false;
  Values values;

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const std::string& name : short_names) all.push_back("-" + name);
    for (const std::string& name : long_names) all.push_back("--" + name);
    return all;
  }
};

struct Node {
  std::string path;                                           // "index build"; empty: the program
  std::vector<std::pair<std::string, std::string>> children;  // name, description
  std::vector<Option> options;
  Values positional;
};

Values values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type == "FILE") return {Values::Kind::files, ""};
  if (type == "DIR") return {Values::Kind::folders, ""};
  if (type.find('|') == std::string::npos) return {};
  Values values{Values::Kind::words, type};
  std::ranges::replace(values.words, '|', ' ');
  return values;
}

void collect(const CLI::App& parser, std::vector<Node>& nodes) {
  Node node{.path = path_of(parser), .children = {}, .options = {}, .positional = {}};
  for (const CLI::Option* option : parser.get_options()) {
    // Positionals of one command differ only in being files or not; files win.
    if (option->get_positional() && node.positional.kind != Values::Kind::files)
      node.positional = values_of(*option);
    if (!option->get_positional())
      node.options.push_back({option->get_snames(), option->get_lnames(), option->get_description(),
                              option->get_type_size() != 0, values_of(*option)});
  }
  const auto children = parser.get_subcommands(std::function<bool(const CLI::App*)>());
  for (const CLI::App* child : children)
    node.children.emplace_back(child->get_name(), child->get_description());
  nodes.push_back(std::move(node));
  for (const CLI::App* child : children) collect(*child, nodes);
}

// The verbs of the program that wheels install, which is Python around this one
// (python/nearwise/_bench/command.py, python/nearwise/_gpu_check/command.py): tests/cli/test_completion.py
// compares. Where only this program is, it says what to install.
Values choice_of(std::string words) { return {Values::Kind::words, std::move(words)}; }

Node bench_node() {
  const Values text;
  const Values files{Values::Kind::files, ""};
  return {
      .path = "bench",
      .children = {},
      .options =
          {{{"h"}, {"help"}, "Print this help message and exit", false, text},
           {{}, {"queries"}, "Queries", true, files},
           {{"o"}, {"output"}, "Page to write", true, files},
           {{}, {"against"}, "Other libraries", true, choice_of("faiss hnswlib usearch scann pynndescent")},
           {{}, {"kinds"}, "Indexes of nearwise", true, choice_of("exact ivf_flat ivf_pq graph")},
           {{"k"}, {}, "Neighbours of each query", true, text},
           {{}, {"metric"}, "Metric", true, choice_of("sqeuclidean euclidean inner_product cosine")},
           {{}, {"target-recall"}, "Recalls to recommend indexes for", true, text},
           {{}, {"rows"}, "Vectors to use, or all", true, text},
           {{}, {"limit-queries"}, "Queries", true, text},
           {{}, {"repeat"}, "Runs of each setting", true, text},
           {{}, {"threads"}, "Threads, to build and for batches", true, text},
           {{}, {"memory-limit"}, "Memory limit of each index by itself", true, text},
           {{}, {"isa"}, "Highest instruction set of nearwise", true, text},
           {{}, {"seed"}, "Seed of all samples", true, text},
           {{}, {"json"}, "Print the result, and errors, as JSON", false, text},
           {{"q"}, {"quiet"}, "No progress and no messages other than errors", false, text}},
      .positional = files};
}

Node gpu_check_node() {
  const Values text;
  const Values files{Values::Kind::files, ""};
  return {
      .path = "gpu-check",
      .children = {},
      .options =
          {{{"h"}, {"help"}, "Print this help message and exit", false, text},
           {{}, {"quick"}, "Small shapes, no timings", false, text},
           {{}, {"full"}, "Also large shapes, and timings", false, text},
           {{"o"}, {"report"}, "JSON to write", true, files},
           {{}, {"device"}, "cuda:N", true, text},
           {{}, {"only"}, "Sections", true, choice_of("exact selection arrays clusters codes lists graphs")},
           {{}, {"limit"}, "Seconds for a case or timing", true, text},
           {{}, {"json"}, "Print the report, and errors, as JSON", false, text},
           {{"q"}, {"quiet"}, "No progress and no messages other than errors", false, text}},
      .positional = text};
}

// In single quotes, which `quote` stands for inside them.
std::string quoted(const std::string& text, const std::string& quote) {
  std::string result = "'";
  for (const char letter : text) result += letter == '\'' ? quote : std::string(1, letter);
  return result + "'";
}

std::string joined_paths(const std::vector<Node>& nodes, const std::string& separator) {
  std::vector<std::string> paths;
  for (const Node& node : nodes)
    if (!node.path.empty()) paths.push_back("'" + node.path + "'");
  return fmt::format("{}", fmt::join(paths, separator));
}

// What a shell does for each kind of value; words are put between the last two.
using Actions = std::array<std::string_view, 5>;
constexpr Actions bash_actions = {":", "_nearwise_offer -f", "_nearwise_offer -d", "_nearwise_offer -W '",
                                  "'"};
constexpr Actions zsh_actions = {": ", ":_files", ":_files -/", ":(", ")"};
constexpr Actions fish_actions = {" -x", " -r -F", " -x -a '(__fish_complete_directories)'", " -x -a '", "'"};

std::string action_of(const Actions& actions, const Values& values) {
  std::string action(actions.at(static_cast<std::size_t>(values.kind)));
  if (values.kind == Values::Kind::words) action += values.words + std::string(actions.back());
  return action;
}

std::string bash_script(const std::vector<Node>& nodes) {
  std::string values;
  std::string words;
  for (const Node& node : nodes) {
    std::vector<std::string> options;
    for (const Option& option : node.options) {
      std::vector<std::string> patterns;
      for (const std::string& name : option.names()) {
        options.push_back(name);
        patterns.push_back(fmt::format("'{} {}'", node.path, name));
      }
      if (option.takes_value)
        values += fmt::format("    {}) {}; return ;;\n", fmt::join(patterns, "|"),
                              action_of(bash_actions, option.values));
    }
    Values positional = node.positional;
    if (!node.children.empty()) positional.kind = Values::Kind::words;
    for (const auto& [name, description] : node.children) positional.words += name + " ";
    words += fmt::format("    '{}') options='{}'; [[ $word == -* ]] || {} ;;\n", node.path,
                         fmt::join(options, " "), action_of(bash_actions, positional));
  }
  return fmt::format(R"(# bash completion of nearwise. Load it: source <(nearwise completion bash)
_nearwise_offer() {{
  [[ $1 == -[fd] ]] && compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "$@" -- "$word")
}}
_nearwise() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} path= options= next i
  COMPREPLY=()
  # bash splits --option=value into three words.
  if [[ $word == = ]]; then
    word=
  elif [[ $previous == = ]]; then
    previous=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    next="${{path:+$path }}${{COMP_WORDS[i]}}"
    case $next in
      {}) path=$next ;;
      *) break ;;
    esac
  done
  case "$path $previous" in
{}  esac
  case $path in
{}  esac
  [[ $word == -* ]] && _nearwise_offer -W "$options"
  return 0
}}
complete -F _nearwise nearwise
)",
                     joined_paths(nodes, " | "), values, words);
}

std::string zsh_option(const Option& option) {
  std::string description;
  for (const char letter : option.description) {
    if (letter == '[' || letter == ']') description += '\\';
    description += letter;
  }
  std::vector<std::string> specs;
  const std::string others = fmt::format("({})", fmt::join(option.names(), " "));
  for (const std::string& name : option.names()) {
    const std::string value = !option.takes_value ? "" : name.starts_with("--") ? "=" : "+";
    const std::string action = option.takes_value ? ":value" + action_of(zsh_actions, option.values) : "";
    specs.push_back(quoted(fmt::format("{}{}{}[{}]{}", others, name, value, description, action), "'\\''"));
  }
  return fmt::format("{}", fmt::join(specs, " \\\n    "));
}

std::string zsh_function(const Node& node) {
  std::string name = "_nearwise " + node.path;
  if (node.path.empty()) name = "_nearwise";
  std::ranges::replace(name, ' ', '_');
  std::string text = name + "() {\n";
  std::vector<std::string> specs;
  for (const Option& option : node.options) specs.push_back(zsh_option(option));
  if (node.children.empty()) {
    if (node.positional.kind != Values::Kind::text)
      specs.push_back(quoted("*:argument" + action_of(zsh_actions, node.positional), "'\\''"));
    return text + fmt::format("  _arguments -s \\\n    {}\n}}\n", fmt::join(specs, " \\\n    "));
  }
  specs.emplace_back("'1:command:->command' '*::argument:->argument'");
  std::string commands;
  std::string calls;
  for (const auto& [child, description] : node.children) {
    commands += fmt::format("        {}\n", quoted(child + ":" + description, "'\\''"));
    calls += fmt::format("        {}) {}_{} ;;\n", child, name, child);
  }
  return text + fmt::format(R"(  local context state state_descr line
  typeset -A opt_args
  _arguments -C \
    {}
  case $state in
    command)
      local -a commands
      commands=(
{}      )
      _describe command commands ;;
    argument)
      case $words[1] in
{}      esac ;;
  esac
}}
)",
                            fmt::join(specs, " \\\n    "), commands, calls);
}

std::string zsh_script(const std::vector<Node>& nodes) {
  std::string text =
      "#compdef nearwise\n# zsh completion of nearwise. Load it: source <(nearwise completion zsh)\n";
  for (const Node& node : nodes) text += zsh_function(node);
  return text +
         "if [[ $funcstack[1] == _nearwise ]]; then _nearwise \"$@\"; else compdef _nearwise nearwise; fi\n";
}

std::string fish_script(const std::vector<Node>& nodes) {
  std::string text = fmt::format(R"(# fish completion of nearwise. Load it: nearwise completion fish | source
function __nearwise_is
    set -l words (commandline -opc)
    set -e words[1]
    set -l path
    for word in $words
        contains -- (string trim -- "$path $word") {}; or break
        set -a path $word
    end
    test "$path" = "$argv[1]"
end
complete -c nearwise -f
)",
                                 joined_paths(nodes, " "));
  for (const Node& node : nodes) {
    const std::string start = fmt::format("complete -c nearwise -n '__nearwise_is \"{}\"'", node.path);
    for (const auto& [name, description] : node.children)
      text += fmt::format("{} -a {} -d {}\n", start, name, quoted(description, "\\'"));
    if (node.positional.kind == Values::Kind::files) text += start + " -F\n";
    if (node.positional.kind == Values::Kind::words)
      text += fmt::format("{} -a '{}'\n", start, node.positional.words);
    for (const Option& option : node.options) {
      text += start;
      for (const std::string& name : option.short_names) text += " -s " + name;
      for (const std::string& name : option.long_names) text += " -l " + name;
      if (option.takes_value) text += action_of(fish_actions, option.values);
      text += " -d " + quoted(option.description, "\\'") + "\n";
    }
  }
  return text;
}

struct CompletionArguments {
  std::string shell;
  const CLI::App* program = nullptr;
};

ExitCode run_completion(Session&, const CompletionArguments& arguments) {
  std::vector<Node> nodes;
  collect(*arguments.program, nodes);
  nodes.push_back(bench_node());
  nodes.front().children.emplace_back("bench", "Indexes and libraries compared on your vectors");
  nodes.push_back(gpu_check_node());
  nodes.front().children.emplace_back("gpu-check", "A CUDA device compared with the CPU, byte for byte");
  print(arguments.shell == "bash"  ? bash_script(nodes)
        : arguments.shell == "zsh" ? zsh_script(nodes)
                                   : fish_script(nodes));
  return ExitCode::ok;
}

}  // namespace

void add_completion(CLI::App& parent, Session& session) {
  const auto [parser, arguments] =
      add_command(parent, session, run_completion, "completion", "Print a completion script for a shell",
                  "  source <(nearwise completion bash)\n"
                  "  source <(nearwise completion zsh)\n"
                  "  nearwise completion fish | source");
  arguments.program = &parent;
  add_choice<std::string>(parser, "shell", arguments.shell, {"bash", "zsh", "fish"}, "Shell")
      ->required()
      ->default_str("");
}

}  // namespace nearwise::cli
