// The command line of a benchmark program: pairs of --name value. Options of every program:
//
//   --base FILE --query-file FILE, or --data uniform|normal|clusters|offset --dim D    vectors and queries
//   --rows N, --queries N    at most, of either
//   --type T, --metric M, --threads T, --isa NAME, --seed S, --repeat R
//
// `clusters` are 300 copies of each centre with a spread of 1e-3, `offset` is 1e4 standard deviations from
// the origin.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "nearwise/nearwise.h"

namespace nearwise::bench {

class Options {
 public:
  // known: the program's own options. Unknown names are errors: a typo would measure something else.
  Options(int count, char** arguments, std::set<std::string> known) {
    known.insert({"rows", "dim", "data", "base", "query-file", "queries", "type", "metric", "threads", "isa",
                  "seed", "repeat"});
    for (int i = 1; i < count; i += 2) {
      const std::string word = arguments[i];
      if (!word.starts_with("--") || !known.contains(word.substr(2)))
        throw std::runtime_error("unknown option " + word);
      if (i + 1 == count) throw std::runtime_error(word + " needs a value");
      values_[word.substr(2)] = arguments[i + 1];
    }
  }

  bool has(const std::string& name) const { return values_.contains(name); }

  std::string text(const std::string& name, const std::string& fallback) const {
    const auto found = values_.find(name);
    return found == values_.end() ? fallback : found->second;
  }

  std::size_t number(const std::string& name, std::size_t fallback) const {
    return has(name) ? static_cast<std::size_t>(std::stoull(values_.at(name))) : fallback;
  }

  // Comma-separated numbers.
  std::vector<std::size_t> numbers(const std::string& name, const std::string& fallback) const {
    std::vector<std::size_t> result;
    std::istringstream list(text(name, fallback));
    for (std::string item; std::getline(list, item, ',');)
      result.push_back(static_cast<std::size_t>(std::stoull(item)));
    if (result.empty()) throw std::runtime_error("--" + name + " needs a number");
    return result;
  }

  ElementType type() const { return parse_element_type(text("type", "f32")); }
  Metric metric() const { return parse_metric(text("metric", "sqeuclidean")); }

  std::size_t repeat(std::size_t fallback) const {
    const std::size_t rounds = number("repeat", fallback);
    if (rounds == 0) throw std::runtime_error("--repeat must be at least 1");
    return rounds;
  }

  // more_seed: added to the seed, for a second, independent context.
  Context context(std::size_t more_seed = 0) const {
    return Context::cpu({.threads = static_cast<int>(number("threads", 2)),
                         .seed = number("seed", 0) + more_seed,
                         .isa = text("isa", "")});
  }

 private:
  std::map<std::string, std::string> values_;
};

inline void print(const nlohmann::json& report) {
  fmt::print("{}\n", report.dump());
  std::fflush(stdout);
}

// Runs `work` with the options; errors are printed, and the result is the exit status.
int run_program(int count, char** arguments, const std::set<std::string>& known, const auto& work) {
  try {
    work(Options(count, arguments, known));
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", arguments[0], error.what());
    return 1;
  }
}

}  // namespace nearwise::bench
