// Searches of graphs and pruned edges that any seeded bug must corrupt: prints "clean" or the finding. Linked
// like driver.cu.
#include <cstdio>
#include <exception>
#include <string>

#include "cuda_emulation/control.h"
#include "support/graph_search_cases.h"
#include "support/prune_cases.h"

namespace nearwise {
namespace {

using support::GraphCase;
using support::GraphShape;
using support::PruneCase;
using support::PruneShape;

bool is_same(const GraphShape& shape) {
  const GraphCase made(shape);
  return made.search(Context::cpu({.threads = 1})) == made.search(Context::cuda(0, {.threads = 1}));
}
bool is_same(const PruneShape& shape) {
  const PruneCase made(shape);
  return made.edges(Context::cpu({.threads = 1})) == made.edges(Context::cuda(0, {.threads = 1}));
}

// Whether the answer was right; prints the finding if not.
template <typename Shape>
bool is_right(const Shape& shape) {
  try {
    if (is_same(shape)) return true;
    std::printf("found: wrong answer: %s\n", describe(shape).c_str());
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
  const GraphShape searches[] = {
      // A beam that is mostly sentinels.
      {.rows = 1500, .dim = 3, .queries = 4, .k = 3, .beam = 3, .evaluated = 3, .seed = 1},
      // Several loads of a row, 4-bit codes, leaves of more than a warp.
      {.rows = 90, .dim = 140, .leaves = 60, .queries = 2, .nibbles = true, .absent = true, .seed = 2},
      // Beams in memory.
      {.kind = Kind::integers,
       .rows = 3000,
       .dim = 3,
       .queries = 1,
       .k = 100,
       .beam = 270,
       .evaluated = 200,
       .allowed = 50,
       .seed = 3},
      // More rows than the set of seen rows holds.
      {.rows = 3000,
       .dim = 4,
       .degree = 128,
       .queries = 1,
       .k = 40,
       .beam = 40,
       .evaluated = 40,
       .allowed = 30,
       .seed = 4}};
  const PruneShape prunings[] = {{.rows = 40, .row_bytes = 192, .seed = 5},
                                 // Equal distances, lists as they are.
                                 {.rows = 60, .values = 2, .length = 40, .keep_short_lists = true, .seed = 6},
                                 // More candidates than are considered, and than the set of rows holds.
                                 {.rows = 1200,
                                  .values = 3,
                                  .length = 1,
                                  .others = 1,
                                  .hub = 4000,
                                  .degree = 128,
                                  .some = true,
                                  .seed = 7}};
  for (const GraphShape& shape : searches)
    if (!is_right(shape)) return 0;
  for (const PruneShape& shape : prunings)
    if (!is_right(shape)) return 0;
  std::printf("clean\n");
  return 0;
}
