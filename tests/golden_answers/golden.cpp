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
constexpr std::array<std::string_view, 2> device_lacks = {"range_search.", "plan_"};
// What takes too long on the emulated device.
constexpr std::array<std::string_view, 1> device_is_too_slow_for = {"graph.large."};

template <std::size_t count>
bool begins_with_one_of(const std::string& name, const std::array<std::string_view, count>& beginnings) {
  return std::ranges::any_of(beginnings,
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

bool on_device() { return context().place().kind == DeviceKind::cuda; }

const std::map<std::string, std::string>& recorded() {
  static const std::map<std::string, std::string> digests = [] {
    std::map<std::string, std::string> found;
    std::ifstream file(NEARWISE_DIGESTS);
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

// A run of all tests must have asked for every recorded digest: one that nobody asks for guards nothing.
class EveryDigestIsAskedFor : public testing::Environment {
  void TearDown() override {
    if (testing::GTEST_FLAG(filter) != "*" || !recording().empty()) return;
    for (const auto& [name, digest] : recorded())
      EXPECT_TRUE(names_seen().contains(name)) << "digests.txt has " << name << ", which no test computes";
  }
};
const testing::Environment* const environment = testing::AddGlobalTestEnvironment(new EveryDigestIsAskedFor);

}  // namespace

Context context(ContextOptions options) {
  static const std::string device = variable("NEARWISE_GOLDEN_DEVICE");
  return Context::on(device.empty() ? "cpu" : device, std::move(options));
}

std::vector<Context> every_context() {
  std::vector<Context> contexts;
  for (const int threads : {1, 2, 3}) contexts.push_back(context({.threads = threads, .seed = 7}));
  const std::vector<std::string> sets =
      on_device() ? std::vector<std::string>{"tf32", "bf16"} : instruction_sets();
  for (const std::string& isa : sets) contexts.push_back(context({.threads = 2, .seed = 7, .isa = isa}));
  return contexts;
}

void expect(const std::string& name, const std::function<void(Digest&)>& fill) {
  names_seen().insert(name);
  if (on_device() && begins_with_one_of(name, device_is_too_slow_for)) return;
  Digest digest;
  if (on_device() && begins_with_one_of(name, device_lacks)) {
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
