// plan_simulation: plans on a simulated machine, one for each seed. Prints failing seeds to standard error
// and a line of JSON with sums.
//
//   plan_simulation --seeds 0..9999
//   plan_simulation --seed 4711 --trace
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "plan/simulation/scenario.h"

namespace {

using namespace nearwise::plan::simulation;

struct Arguments {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  bool trace = false;
};

std::uint64_t to_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw std::invalid_argument(fmt::format("expected a number, got '{}'", text));
  return number;
}

Arguments parse(const std::vector<std::string_view>& words) {
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool has_value = i + 1 < words.size();
    if (words[i] == "--trace") {
      arguments.trace = true;
    } else if (words[i] == "--seed" && has_value) {
      arguments.first = arguments.last = to_number(words[++i]);
    } else if (words[i] == "--seeds" && has_value) {
      const std::string_view range = words[++i];
      const std::size_t dots = std::min(range.find(".."), range.size());
      arguments.first = to_number(range.substr(0, dots));
      arguments.last = to_number(range.substr(std::min(dots + 2, range.size())));
    } else {
      throw std::invalid_argument("usage: plan_simulation --seeds FIRST..LAST | --seed NUMBER [--trace]");
    }
  }
  return arguments;
}

int simulate(const Arguments& arguments) {
  const auto begin = std::chrono::steady_clock::now();
  const SimulationFolder folder;
  std::map<std::string, std::unique_ptr<const SimulatedPlan>> plans;
  Tally tally;
  std::vector<std::uint64_t> failed;
  for (std::uint64_t seed = arguments.first; seed <= arguments.last; ++seed) {
    const std::string& name = plan_of_seed(seed);
    auto& plan = plans[name];
    if (plan == nullptr) plan = std::make_unique<const SimulatedPlan>(folder.path(), name);
    try {
      tally += Scenario(*plan, seed, Bug::none, arguments.trace ? &std::cout : nullptr).play();
    } catch (const std::exception& error) {
      failed.push_back(seed);
      std::cerr << fmt::format("seed {} ({}): {}\nrepeat it with: plan_simulation --seed {} --trace\n", seed,
                               name, error.what(), seed);
    }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const nlohmann::ordered_json sums = {{"seeds", arguments.last - arguments.first + 1},
                                       {"failed", failed},
                                       {"attempts", tally.attempts},
                                       {"duplicates", tally.duplicates},
                                       {"calls", tally.calls},
                                       {"kills", tally.kills},
                                       {"power_losses", tally.power_losses},
                                       {"damaged_files", tally.damaged_files},
                                       {"seconds", seconds.count()}};
  std::cout << sums.dump() << '\n';
  return failed.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return simulate(parse({argv + 1, argv + argc}));
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
