// Builds, changes and searches with every allocation failing once, and with memory used up at every point.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "faults/fault_kit.h"
#include "faults/samples.h"
#include "nearwise/dedup.h"
#include "nearwise/exact.h"
#include "nearwise/graph_index.h"
#include "support/graph_cases.h"

namespace nearwise::faults {
namespace {

using support::as_expected;
using support::same;
using testing_io::read_all;
using testing_io::TemporaryFolder;
namespace fs = std::filesystem;

class FaultsOfOperations : public ::testing::Test {
 protected:
  // An operation that returns an object and changes nothing. compare(expected, found): are they equal?
  template <typename Make, typename Compare>
  void try_making(const std::string& name, const Make& make, const Compare& compare, double apart = 1.05) {
    using Object = decltype(make(maker()));
    const Object expected = make(maker());
    for (const int threads : {1, 2}) {
      const Context context = Context::cpu({.threads = threads, .seed = 3});
      std::optional<Object> made;
      const Attempt attempt = {.name = name,
                               .prepare = [&] { made.reset(); },
                               .run = [&] { made.emplace(make(context)); },
                               .expect_before =
                                   [&] {
                                     EXPECT_FALSE(made.has_value());
                                     EXPECT_EQ(context.memory_used(), 0U);
                                   },
                               .expect_result = [&] { EXPECT_TRUE(compare(expected, *made)); }};
      FaultKit(folder.path()).apart(apart).run_all(attempt);
    }
  }

  const TemporaryFolder folder;
};

bool equal(const Neighbors& left, const Neighbors& right) { return support::same_bytes(left, right); }

bool equal_elements(const Matrix<float>& left, const Matrix<float>& right) {
  return std::equal(left.data(), left.data() + left.rows() * left.cols(), right.data(),
                    right.data() + right.rows() * right.cols());
}

TEST_F(FaultsOfOperations, ExactSearch) {
  try_making(
      "knn", [](const Context& context) { return knn(context, some(), vectors(), 5); }, equal);
  try_making(
      "knn of one", [](const Context& context) { return knn(context, some().slice(0, 1), vectors(), 5); },
      equal);
  try_making(
      "exact_knn_graph", [](const Context& context) { return exact_knn_graph(context, vectors(), 5); },
      equal);
  try_making(
      "range_search", [](const Context& context) { return range_search(context, some(), vectors(), 4.0F); },
      [](const RangeNeighbors& left, const RangeNeighbors& right) {
        return left.ids == right.ids && left.distances == right.distances;
      });
  try_making(
      "threshold_join", [](const Context& context) { return threshold_join(context, vectors(), 4.0F); },
      [](const RangeNeighbors& left, const RangeNeighbors& right) {
        return left.ids == right.ids && left.distances == right.distances;
      });
  try_making(
      "dedup", [](const Context& context) { return dedup(context, vectors(), 4.0F); },
      [](const Deduplication& left, const Deduplication& right) {
        return left.removed_by == right.removed_by;
      });
  try_making(
      "Exact",
      [](const Context& context) { return Exact::prepare(context, vectors()).search(context, some(), 5); },
      equal);
}

TEST_F(FaultsOfOperations, Training) {
  try_making(
      "train_kmeans",
      [](const Context& context) { return train_kmeans(context, vectors(), 10, {.iterations = 3}); },
      [](const KMeans& left, const KMeans& right) {
        return equal_elements(left.centroids, right.centroids);
      });
  try_making(
      "ProductQuantizer.train",
      [](const Context& context) {
        return ProductQuantizer::train(context, vectors(), {.parts = 4, .bits = 4, .iterations = 2});
      },
      [](const ProductQuantizer& left, const ProductQuantizer& right) {
        return std::ranges::equal(left.codebooks(), right.codebooks());
      });
  try_making(
      "OptimizedProductQuantizer.train",
      [](const Context& context) {
        return OptimizedProductQuantizer::train(
            context, vectors(), {.quantizer = {.parts = 4, .bits = 4, .iterations = 2}, .rounds = 1});
      },
      [](const OptimizedProductQuantizer& left, const OptimizedProductQuantizer& right) {
        return std::ranges::equal(left.quantizer.codebooks(), right.quantizer.codebooks());
      },
      1.6);
  try_making(
      "AdditiveQuantizer.train",
      [](const Context& context) {
        return AdditiveQuantizer::train(context, vectors(), {.codebooks = 2, .rounds = 1, .iterations = 1});
      },
      [](const AdditiveQuantizer& left, const AdditiveQuantizer& right) {
        return std::ranges::equal(left.codewords(), right.codewords());
      },
      1.6);
}

TEST_F(FaultsOfOperations, Graphs) {
  const auto same_graph = [](const KnnGraph& left, const KnnGraph& right) {
    return equal(left.neighbors, right.neighbors);
  };
  try_making(
      "build_knn_graph",
      [](const Context& context) { return build_knn_graph(context, vectors(), {.degree = 4}); }, same_graph);
  try_making(
      "remove_from_knn_graph",
      [](const Context& context) {
        return remove_from_knn_graph(context, vectors(), graph(), std::vector<Id>{5, 70});
      },
      same_graph);
  const support::Rows many(support::generate(support::Kind::normal, 1200, dim, 5), ElementType::f32);
  try_making(
      "NN-Descent",
      [&](const Context& context) {
        return graph::build(context, many.view(), {.degree = 4}, support::small_partitions(4));
      },
      same_graph, 1.6);
}

TEST_F(FaultsOfOperations, InvertedFiles) {
  for (const Encoding& encoding : {flat(), pq(), lsq()}) {
    const std::string kind = std::to_string(encoding.index());
    const Ivf index = make_index(encoding);
    try_making(
        "build" + kind,
        [&](const Context& context) {
          return Ivf::build(context, vectors(), {.lists = 6, .encoding = encoding},
                            CalibrationOptions{.queries = 20});
        },
        [](const Ivf& left, const Ivf& right) {
          return same(answers_of(left), right.search(maker(), some(), 4, {.probes = 6}));
        },
        1.8);
    try_making(
        "search" + kind,
        [&](const Context& context) { return index.search(context, some(), 4, {.probes = 3}); }, equal);
    try_making(
        "search for one" + kind,
        [&](const Context& context) { return index.search(context, some().slice(0, 1), 4, {.probes = 3}); },
        equal);
    try_making(
        "re-ranking" + kind,
        [&](const Context& context) {
          return index.search(context, some(), 4, {.probes = 3, .rerank = vectors()});
        },
        equal);
  }
}

// Would catch: an index that is half changed by a failure.
TEST_F(FaultsOfOperations, ChangesOfAnIndex) {
  const fs::path path = folder / "index.nw";
  const fs::path other_path = folder / "other.nw";
  for (const Encoding& encoding : {flat(), pq(), lsq()})
    for (const bool is_mapped : {false, true}) {
      SCOPED_TRACE(std::to_string(encoding.index()) + (is_mapped ? " mapped" : ""));
      const Ivf made = make_index(encoding, vectors().view().slice(0, 300));
      const oracle::Answer before = answers_of(made);
      save(made, path);
      save(make_index(encoding, some(), 300), other_path);
      const Context context = Context::cpu({.threads = 2, .seed = 3});
      std::optional<Ivf> index;
      std::optional<Ivf> other;
      const auto prepare = [&] {
        index.emplace(is_mapped ? load_ivf(context, path) : made.part(context, 0, made.size()));
        other.emplace(load_ivf(context, other_path));
      };
      const auto try_changing = [&](const std::string& name, const std::function<void()>& change,
                                    std::size_t size) {
        prepare();
        change();
        const oracle::Answer after = answers_of(*index);
        const Attempt attempt = {
            .name = name,
            .prepare = prepare,
            .run = change,
            .expect_before =
                [&] {
                  EXPECT_EQ(index->size(), 300U);
                  EXPECT_EQ(index->next_id(), 300);
                  EXPECT_TRUE(same(before, index->search(maker(), some(), 4, {.probes = 6})));
                  EXPECT_EQ(other->size(), 20U);
                },
            .expect_result =
                [&] {
                  EXPECT_EQ(index->size(), size);
                  EXPECT_TRUE(same(after, index->search(maker(), some(), 4, {.probes = 6})));
                }};
        FaultKit(folder.path()).apart(1.1).run_all(attempt);
      };
      try_changing(
          "add", [&] { index->add(context, some()); }, 320);
      try_changing(
          "remove",
          [&] {
            index->remove(context, std::vector<Id>{1, 5, 100});
          },
          297);
      try_changing(
          "merge", [&] { index->merge(context, *other); }, 320);
    }
}

TEST_F(FaultsOfOperations, ChangesOfAGraphIndex) {
  const fs::path path = folder / "index.nw";
  save(GraphIndex::build(maker(), vectors().view().slice(0, 300), {.degree = 16}, std::nullopt), path);
  const Context context = Context::cpu({.threads = 2, .seed = 3});
  std::optional<GraphIndex> index;
  const auto answers = [&] { return index->search(maker(), some(), 4, {.beam = 300}); };
  // The second change of each kind finds spare memory.
  for (const bool has_room : {false, true}) {
    const std::size_t size = has_room ? 302 : 300;
    const auto prepare = [&] {
      index.emplace(load_graph_index(context, path));
      if (has_room) index->add(context, vectors().view().slice(300, 2));
    };
    const auto try_changing = [&](const std::string& name, const std::function<void()>& change,
                                  std::size_t size_after) {
      SCOPED_TRACE(name + (has_room ? ", with room" : ""));
      prepare();
      const Neighbors before = answers();
      change();
      const Neighbors after = answers();
      const Attempt attempt = {.name = name,
                               .prepare = prepare,
                               .run = change,
                               .expect_before =
                                   [&] {
                                     EXPECT_EQ(index->size(), size);
                                     EXPECT_EQ(index->next_id(), static_cast<Id>(size));
                                     EXPECT_TRUE(equal(before, answers()));
                                   },
                               .expect_result =
                                   [&] {
                                     EXPECT_EQ(index->size(), size_after);
                                     EXPECT_TRUE(equal(after, answers()));
                                   }};
      FaultKit(folder.path()).apart(1.3).run_all(attempt);
    };
    try_changing(
        "add", [&] { index->add(context, some()); }, size + 20);
    try_changing(
        "update",
        [&] {
          index->update(context, std::vector<Id>{1, 5}, some().slice(0, 2));
        },
        size);
    try_changing(
        "remove",
        [&] {
          index->remove(context, std::vector<Id>{1, 5, 100});
        },
        size - 3);
    try_changing(
        "compact", [&] { index->compact(context); }, size);
  }
}

TEST_F(FaultsOfOperations, MergesOfFiles) {
  const std::vector<fs::path> files = {folder / "left.nw", folder / "right.nw"};
  save(make_index(pq(), vectors().view().slice(0, 300)), files[0]);
  save(make_index(pq(), some(), 300), files[1]);
  const fs::path merged = folder / "merged.nw";
  const Context context = Context::cpu({.threads = 1});
  merge_ivf_files(context, files, merged);
  const auto written = read_all(merged);
  const Attempt attempt = {
      .name = "merge_ivf_files",
      .prepare = [&] { fs::remove(merged); },
      .run = [&] { merge_ivf_files(context, files, merged); },
      .expect_before = [&] { EXPECT_TRUE(!fs::exists(merged) || read_all(merged) == written); },
      .expect_result = [&] { EXPECT_EQ(read_all(merged), written); }};
  FaultKit(folder.path()).apart(1.05).run_all(attempt);
}

}  // namespace
}  // namespace nearwise::faults
