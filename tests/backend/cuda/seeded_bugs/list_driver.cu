// List searches that any seeded bug must corrupt: prints "clean" or the finding. Linked like driver.cu.
#include <cstdio>
#include <exception>
#include <string>

#include "cuda_emulation/control.h"
#include "support/list_cases.h"

namespace nearwise {
namespace {

// Whether the search was right; prints the finding if not.
bool is_right(const support::ListShape& shape) {
  try {
    const support::ListCase made(shape);
    const testing::AssertionResult match = made.holds(made.search(Context::cuda(0, {.threads = 1})));
    if (match) return true;
    std::printf("found: wrong answer: %s: %s\n", describe(shape).c_str(), match.message());
  } catch (const std::exception& error) {
    const std::string report = cuda_emulation::take_report();
    std::printf("%s: %s: %s\n", report.empty() ? "error" : "found",
                report.empty() ? error.what() : report.c_str(), describe(shape).c_str());
  }
  return false;
}

}  // namespace
}  // namespace nearwise

int main() {
  using namespace nearwise;
  using support::Kind;
  for (const Metric metric : support::every_metric)
    for (const unsigned bits : {4U, 8U})
      for (const Kind kind : {Kind::normal, Kind::near_duplicates})
        // Product codes with one or several loads of tables, and uncompressed rows.
        for (const std::size_t parts : {0UL, 3UL, bits == 8 ? 18UL : 7UL})
          if (!is_right({.kind = kind,
                         .metric = metric,
                         .rows = parts == 18 ? 90UL : 160UL,
                         .queries = 3,
                         .dim = 20,
                         .lists = 3,
                         .probes = 2,
                         .parts = parts,
                         .bits = bits,
                         .k = 4,
                         .candidates = 4,
                         .centred = metric == Metric::sqeuclidean,
                         .seed = parts}))
            return 0;
  for (const Metric metric : support::every_metric)
    for (const Kind kind : {Kind::normal, Kind::near_duplicates})
      // Dimensions above and below the size of a warp.
      for (const std::size_t dim : {5UL, 35UL})
        if (!is_right({.kind = kind,
                       .metric = metric,
                       .rows = 100,
                       .queries = 2,
                       .dim = dim,
                       .lists = 3,
                       .probes = 2,
                       .parts = 3,
                       .additive = true,
                       .k = 4,
                       .candidates = 4,
                       .centred = metric == Metric::sqeuclidean,
                       .seed = dim}))
          return 0;
  std::printf("clean\n");
  return 0;
}
