// Exact search: every pair of element types, every metric, one query and many, rows of different lengths.
#include "nearwise/exact.h"

#include <gtest/gtest.h>

#include <string>

#include "golden_answers/data.h"
#include "golden_answers/golden.h"
#include "nearwise/dedup.h"

namespace nearwise::golden {
namespace {

using support::Layout;
using support::Rows;

TEST(GoldenExact, Knn) {
  for (const ElementType type : every_type)
    for (const Metric metric : every_metric) {
      const Rows base = make_rows(500, 19, 1, type, Layout::padded);
      const Rows queries = make_rows(33, 19, 2, type, Layout::unaligned);
      const std::string name = name_of("knn", type, metric);
      for (const Context& context : every_context()) {
        expect_answer(name + ".many", knn(context, queries, base, 10, {.metric = metric}));
        expect_answer(name + ".one", knn(context, queries.view().slice(3, 1), base, 10, {.metric = metric}));
      }
      expect_answer(name + ".self", knn(context(), base, base, 7, {.metric = metric, .exclude_self = true}));
      expect_answer(name + ".pad", knn(context(), queries, base.view().slice(2, 6), 9,
                                       {.metric = metric, .short_rows = ShortRows::pad}));
    }
}

// The answers of knn, whatever the tensor cores of a device multiply.
TEST(GoldenExact, KnnByTensorCores) {
  if (!on_device()) GTEST_SKIP() << "of CUDA devices only";
  const Rows base = make_rows(500, 19, 1, ElementType::f32, Layout::padded);
  const Rows queries = make_rows(33, 19, 2, ElementType::f32, Layout::unaligned);
  for (const char* const isa : {"tf32", "bf16"})
    for (const Metric metric : every_metric)
      expect_answer(
          name_of("knn", ElementType::f32, metric) + ".many",
          knn(context({.threads = 2, .seed = 7, .isa = isa}), queries, base, 10, {.metric = metric}));
}

TEST(GoldenExact, KnnOfMixedTypes) {
  for (const ElementType base_type : every_type)
    for (const ElementType query_type : every_type) {
      const Rows base = make_rows(300, 32, 3, base_type);
      const Rows queries = make_rows(17, 32, 4, query_type);
      const std::string types = std::string(name(query_type)) + "." + std::string(name(base_type));
      for (const Metric metric : {Metric::sqeuclidean, Metric::cosine})
        expect_answer("knn.mixed." + types + "." + std::string(name(metric)),
                      knn(context(), queries, base, 10, {.metric = metric}));
    }
}

TEST(GoldenExact, KnnOfLongerRows) {
  const Rows queries = make_rows(40, 100, 6);
  const Rows base = make_rows(1500, 100, 5);
  const Rows integer_queries = make_integers(40, 100, 6);
  const Rows integers = make_integers(1500, 100, 5);
  for (const Context& context : every_context())
    for (const Metric metric : every_metric) {
      const std::string ending = std::string(name(metric));
      expect_answer("knn.long." + ending, knn(context, queries, base, 100, {.metric = metric}));
      expect_answer("knn.integers." + ending,
                    knn(context, integer_queries, integers, 20, {.metric = metric}));
    }
}

TEST(GoldenExact, ExactKnnGraph) {
  for (const ElementType type : every_type)
    for (const Metric metric : every_metric) {
      const Rows base = make_rows(600, 32, 7, type);
      for (const Context& context : every_context())
        expect_answer(name_of("exact_knn_graph", type, metric),
                      exact_knn_graph(context, base, 8, {.metric = metric}));
    }
}

TEST(GoldenExact, ThresholdJoinAndDedup) {
  for (const ElementType type : every_type)
    for (const Metric metric : every_metric) {
      const Rows rows = make_rows(700, 19, 8, type);
      // The distance of the fifth other vector of one: others have more or fewer within it.
      const float threshold =
          knn(context(), rows.view().slice(0, 1), rows, 6, {.metric = metric}).distances(0, 5);
      for (const Context& context : every_context()) {
        expect(name_of("threshold_join", type, metric), [&](Digest& digest) {
          digest.add(threshold_join(context, rows, threshold, {.metric = metric}));
        });
        for (const DuplicateGrouping grouping : {DuplicateGrouping::star, DuplicateGrouping::connected})
          expect(name_of("dedup." + std::string(name(grouping)), type, metric), [&](Digest& digest) {
            const Deduplication found = dedup(
                context, rows, threshold, {.metric = metric, .grouping = grouping, .keep = KeptRow::medoid});
            digest.add(RangeNeighbors{{found.kept.size(), found.pairs}, found.removed_by, found.distances});
            digest.add(RangeNeighbors{{}, found.groups, {}});
          });
      }
    }
}

TEST(GoldenExact, RangeSearch) {
  for (const ElementType type : every_type)
    for (const Metric metric : every_metric) {
      const Rows base = make_rows(400, 19, 8, type);
      const Rows queries = make_rows(21, 19, 9, type);
      // The distance of the 20th neighbour of one query: others have more or fewer within it.
      const Neighbors some = knn(context(), queries.view().slice(0, 1), base, 20, {.metric = metric});
      const float radius = some.distances(0, 19);
      const std::string name = name_of("range_search", type, metric);
      for (const Context& context : every_context())
        expect(name, [&](Digest& digest) {
          digest.add(range_search(context, queries, base, radius, {.metric = metric}));
        });
      const Exact exact = Exact::prepare(context(), base, {.metric = metric});
      expect(name, [&](Digest& digest) { digest.add(exact.range_search(context(), queries, radius)); });
    }
}

// The answers of the functions: under their names.
TEST(GoldenExact, Prepared) {
  for (const ElementType type : every_type)
    for (const Metric metric : every_metric) {
      const Rows base = make_rows(500, 19, 1, type, Layout::padded);
      const Rows queries = make_rows(33, 19, 2, type, Layout::unaligned);
      const std::string name = name_of("knn", type, metric);
      for (const Context& context : every_context()) {
        const Exact exact = Exact::prepare(context, base, {.metric = metric});
        expect_answer(name + ".many", exact.search(context, queries, 10));
        expect_answer(name + ".one", exact.search(context, queries.view().slice(3, 1), 10));
      }
      const Exact few = Exact::prepare(context(), base.view().slice(2, 6), {.metric = metric}).to(context());
      expect_answer(name + ".pad", few.search(context(), queries, 9, {.short_rows = ShortRows::pad}));
    }
}

}  // namespace
}  // namespace nearwise::golden
