// Exact searches that any seeded bug must corrupt: prints "clean" or the finding. Linked like driver.cu.
#include <cstdio>
#include <exception>
#include <string>

#include "cuda_emulation/control.h"
#include "nearwise/exact.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

// Whether the searches so far were right; prints the finding if not.
bool is_right(const support::KnnCase& knn_case, const char* isa) {
  const support::Problem problem = support::make_problem(knn_case.recipe);
  const KnnOptions options = {.metric = knn_case.metric};
  try {
    const oracle::Answer expected = support::as_expected(
        knn(Context::cpu({.threads = 1}), problem.queries, problem.base, knn_case.k, options));
    const testing::AssertionResult match =
        support::same(expected, knn(Context::cuda(0, {.threads = 1, .isa = isa}), problem.queries,
                                    problem.base, knn_case.k, options));
    if (match) return true;
    std::printf("found: wrong answer: %s, %s: %s\n", isa, describe(knn_case).c_str(), match.message());
  } catch (const std::exception& error) {
    const std::string report = cuda_emulation::take_report();
    std::printf("%s: %s: %s\n", report.empty() ? "error" : "found",
                report.empty() ? error.what() : report.c_str(), describe(knn_case).c_str());
  }
  return false;
}

}  // namespace
}  // namespace nearwise

int main() {
  using namespace nearwise;
  using support::Kind;
  for (const char* isa : {"f32", "tf32", "bf16"})
    for (const Metric metric : support::every_metric)
      for (const Kind kind : {Kind::normal, Kind::offset_1e4, Kind::near_duplicates})
        for (const std::size_t k : {1, 5})
          if (!is_right({.recipe = {.kind = kind, .rows = 150, .queries = 6, .dim = 20, .seed = k},
                         .metric = metric,
                         .k = k},
                        isa))
            return 0;
  std::printf("clean\n");
  return 0;
}
