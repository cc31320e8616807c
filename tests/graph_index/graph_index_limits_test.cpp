// Graph indexes within a memory limit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nearwise/graph/knn_graph.h"
#include "nearwise/graph_index.h"
#include "support/error_of.h"
#include "support/knn_cases.h"
#include "support/memory_limits.h"

namespace nearwise {
namespace {

struct Shape {
  std::size_t rows;
  std::size_t dim;
  ElementType type;
  Metric metric;
  int threads;
  bool has_ids = false;
};

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> every = {
      {2, 3, ElementType::f32, Metric::sqeuclidean, 1},
      {300, 700, ElementType::f32, Metric::cosine, 3, true},
      {3000, 16, ElementType::u8, Metric::sqeuclidean, 1},
      {5000, 24, ElementType::f32, Metric::inner_product, 2},
      {20'000, 12, ElementType::f32, Metric::sqeuclidean, 3, true},
  };
  return every;
}

// `build` is refused at once within one byte, and succeeds within the limit that the refusal names.
template <typename Build>
void expect_named_limit_suffices(const Build& build, int threads) {
  const Context poor = Context::cpu({.threads = threads, .memory_limit = 1});
  const Error error = support::error_of([&] { build(poor); });
  ASSERT_EQ(error.code(), ErrorCode::out_of_memory) << error.what();
  ASSERT_NE(std::string(error.what()).find("would suffice"), std::string::npos) << error.what();
  EXPECT_EQ(poor.memory_used(), 0U);
  const std::uint64_t limit = std::ranges::max(support::sizes_in(error.what()));
  const GraphIndex index = build(Context::cpu({.threads = threads, .memory_limit = limit}));
  EXPECT_GE(index.size(), 2U);
}

TEST(GraphIndexMemory, TheLimitThatIsNamedIsEnough) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(std::to_string(shape.rows) + " x " + std::to_string(shape.dim));
    const support::Rows rows(support::generate(support::Kind::normal, shape.rows, shape.dim, 7), shape.type);
    std::vector<Id> ids;
    for (std::size_t row = 0; shape.has_ids && row < shape.rows; ++row)
      ids.push_back(static_cast<Id>(7 * (shape.rows - row)));
    const GraphIndexOptions options = {.metric = shape.metric, .degree = 32, .ids = ids};
    expect_named_limit_suffices(
        [&](const Context& context) { return GraphIndex::build(context, rows, options); }, shape.threads);
    if (shape.has_ids || shape.rows < 10) continue;
    const KnnGraph graph =
        build_knn_graph(Context::cpu({.threads = 2}), rows, {.degree = 20, .metric = shape.metric});
    expect_named_limit_suffices(
        [&](const Context& context) { return GraphIndex::from_knn_graph(context, graph, rows, options); },
        shape.threads);
  }
}

}  // namespace
}  // namespace nearwise
