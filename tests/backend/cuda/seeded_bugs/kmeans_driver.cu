// Cluster means that any seeded bug must corrupt: prints "clean" or the finding. Linked like driver.cu.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

#include "cuda_emulation/control.h"
#include "support/kmeans_cases.h"
#include "support/means_cases.h"

namespace nearwise {
namespace {

// Whether the means were right; prints the finding if not.
bool is_right(const support::MeansCase& made, std::uint64_t limit) {
  try {
    if (support::means_of(Context::cuda(0, {.threads = 1, .memory_limit = limit}), made) ==
        support::means_of(Context::cpu({.threads = 1}), made))
      return true;
    std::printf("found: wrong answer: %s, limit %llu\n", describe(made).c_str(),
                static_cast<unsigned long long>(limit));
  } catch (const std::exception& error) {
    const std::string report = cuda_emulation::take_report();
    std::printf("%s: %s: %s\n", report.empty() ? "error" : "found",
                report.empty() ? error.what() : report.c_str(), describe(made).c_str());
  }
  return false;
}

}  // namespace
}  // namespace nearwise

int main() {
  using namespace nearwise;
  for (const Metric metric : support::kmeans_metrics) {
    const support::MeansCase cases[] = {
        {.rows = 150, .dim = 20, .clusters = 9, .metric = metric, .seed = 1},
        {.rows = 60, .dim = 128, .clusters = 3, .metric = metric, .seed = 2},
        // Pieces split by a batch.
        {.rows = 6'000, .dim = 1, .clusters = 2, .metric = metric, .seed = 3}};
    for (const support::MeansCase& made : cases)
      for (const std::uint64_t limit : {0, 150'000})
        if (!is_right(made, limit)) return 0;
  }
  std::printf("clean\n");
  return 0;
}
