// The command line of a benchmark program: --name value, nothing else.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace nearwise::bench {

class Options {
 public:
  // Throws on a name that is not among `known`: a misspelt option would measure something else.
  Options(int count, char** arguments, const std::set<std::string>& known) {
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
    const auto found = values_.find(name);
    return found == values_.end() ? fallback : static_cast<std::size_t>(std::stoull(found->second));
  }

  // Numbers with commas between them.
  std::vector<std::size_t> numbers(const std::string& name, const std::string& fallback) const {
    std::vector<std::size_t> result;
    std::istringstream list(text(name, fallback));
    for (std::string item; std::getline(list, item, ',');)
      result.push_back(static_cast<std::size_t>(std::stoull(item)));
    if (result.empty()) throw std::runtime_error("--" + name + " needs a number");
    return result;
  }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace nearwise::bench
