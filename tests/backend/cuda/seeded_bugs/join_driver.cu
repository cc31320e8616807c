// Local joins that any seeded bug must corrupt: prints "clean" or the finding. Linked like driver.cu.
#include <cstdio>
#include <exception>
#include <string>

#include "cuda_emulation/control.h"
#include "support/join_cases.h"

namespace nearwise {
namespace {

// Whether the lists were right; prints the finding if not.
bool is_right(const support::JoinShape& shape) {
  try {
    const support::JoinCase made(shape);
    const testing::AssertionResult match = support::same_lists(
        made.lists(Context::cpu({.threads = 1})), made.lists(Context::cuda(0, {.threads = 1})), shape.degree);
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
  // Small, since insertion under locks is slow in the check build.
  const support::JoinShape shapes[] = {
      // Ties.
      {.kind = Kind::integers, .rows = 30, .dim = 3, .degree = 4, .groups = 2, .members = 30, .seed = 1},
      {.metric = Metric::cosine, .rows = 20, .dim = 20, .degree = 7, .groups = 2, .members = 20, .seed = 2},
      // Scores cancel: the error bound decides.
      {.kind = Kind::offset_1e4, .rows = 30, .dim = 5, .degree = 3, .groups = 3, .members = 30, .seed = 3},
      {.kind = Kind::cancelling,
       .metric = Metric::inner_product,
       .rows = 25,
       .dim = 9,
       .members = 25,
       .seed = 4},
      {.rows = 40, .dim = 4, .degree = 8, .groups = 2, .members = 30, .rounds = 1, .sample = 2, .seed = 6},
      // Lists longer than a warp.
      {.kind = Kind::exact_duplicates,
       .rows = 40,
       .dim = 4,
       .degree = 36,
       .groups = 1,
       .members = 40,
       .seed = 5},
      // Several tiles.
      {.rows = 70, .dim = 3, .degree = 2, .groups = 1, .members = 70, .seed = 7}};
  for (const support::JoinShape& shape : shapes)
    if (!is_right(shape)) return 0;
  std::printf("clean\n");
  return 0;
}
