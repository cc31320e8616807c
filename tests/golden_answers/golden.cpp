#include "golden_answers/golden.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string_view>

#include "nearwise/error.h"
#include "nearwise/machine.h"

namespace nearwise::golden {
namespace {

// What a CUDA device does not offer, by the beginning of the name: expected to end in an error that says so.
constexpr std::array<std::string_view, 4> device_lacks = {"range_search.", "threshold_join.", "dedup.",
                                                          "plan_"};

bool is_lacking(const std::string& name) {
  return std::ranges::any_of(device_lacks,
                             [&](std::string_view beginning) { return name.starts_with(beginning); });
}

// Empty where the variable is not set.
std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

const std::string& recording() {
  static const std::string path = variable("NEARWISE_RECORD_DIGESTS");
  return path;
}

const std::map<std::string, std::string>& recorded() {
  static const std::map<std::string, std::string> digests = [] {
    std::map<std::string, std::string> found;
    const std::string elsewhere = variable("NEARWISE_GOLDEN_DIGESTS");
    std::ifstream file(elsewhere.empty() ? NEARWISE_DIGESTS : elsewhere);
    std::string name;
    std::string digest;
    while (file >> name >> digest)
      if (!found.emplace(name, digest).second) ADD_FAILURE() << "digests.txt has two digests of " << name;
    return found;
  }();
  return digests;
}

std::set<std::string>& names_seen() {
  static std::set<std::string> names;
  return names;
}

// A run of all tests on the CPU must have asked for every recorded digest: one that nobody asks for guards
// nothing.
class EveryDigestIsAskedFor : public testing::Environment {
  void TearDown() override {
    if (testing::GTEST_FLAG(filter) != "*" || !recording().empty() || on_device()) return;
    for (const auto& [name, digest] : recorded())
      EXPECT_TRUE(names_seen().contains(name)) << "digests.txt has " << name << ", which no test computes";
  }
};
const testing::Environment* const environment = testing::AddGlobalTestEnvironment(new EveryDigestIsAskedFor);

}  // namespace

Context context(ContextOptions options) {
  static const std::string device = variable("NEARWISE_GOLDEN_DEVICE");
  if (device.empty()) return Context::cpu(std::move(options));
  options.threads = 1;  // others would wait for the emulated device busily
  return Context::on(device, std::move(options));
}

std::vector<Context> every_context() {
  if (on_device() || variable("NEARWISE_GOLDEN_CONTEXTS") == "one") return {context()};
  std::vector<Context> contexts;
  for (const int threads : {1, 2, 3}) contexts.push_back(context({.threads = threads, .seed = 7}));
  for (const std::string& isa : instruction_sets())
    contexts.push_back(context({.threads = 2, .seed = 7, .isa = isa}));
  return contexts;
}

bool on_device() { return context().place().kind == DeviceKind::cuda; }

bool is_due(std::size_t number, std::size_t step) { return !on_device() || number % step == 0; }

void expect(const std::string& name, const std::function<void(Digest&)>& fill) {
  names_seen().insert(name);
  Digest digest;
  if (on_device() && is_lacking(name)) {
    EXPECT_THROW(fill(digest), Error) << name << ": the device offers it by now";
    return;
  }
  fill(digest);
  const std::string found = fmt::format("{:016x}", digest.value());
  if (!recording().empty()) {
    std::ofstream(recording(), std::ios::app) << name << ' ' << found << '\n';
    GTEST_SKIP() << "digests are recorded, not judged";
  }
  const auto known = recorded().find(name);
  if (known == recorded().end())
    ADD_FAILURE() << name << ": no digest is recorded, found " << found;
  else
    EXPECT_EQ(known->second, found) << name << ": recorded " << known->second << ", found " << found;
}

void expect_container(const std::string& name, const std::filesystem::path& path) {
  expect(name + ".sections", [&](Digest& digest) { digest.add_sections(path); });
  expect(name + ".bytes", [&](Digest& digest) { digest.add_file(path); });
}

}  // namespace nearwise::golden
