// Data and calls that are hard for a graph: vectors that hide others, lengths that f32 does not hold, data in
// order, more results than vectors, limits that leave room for one search.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/context_state.h"
#include "core/math/random.h"
#include "graph_index/entry_tree.h"
#include "graph_index/graph_index_state.h"
#include "graph_index/search_graph.h"
#include "graph_index/train_codec.h"
#include "io/changed_metadata.h"
#include "io/container/metadata.h"
#include "io/reseal.h"
#include "io/temporary_folder.h"
#include "nearwise/graph_index.h"
#include "nearwise/machine.h"
#include "nearwise/storage.h"
#include "support/error_of.h"
#include "support/ivf_cases.h"
#include "support/knn_cases.h"

namespace nearwise::graph_index {
namespace {

using support::error_of;
using support::Kind;
using support::one_thread;

// Share of the k nearest vectors that are found.
double found_share(const Neighbors& found, const RowsView& queries, const RowsView& rows, Metric metric) {
  const std::size_t k = found.ids.cols();
  const oracle::Answer exact = oracle::knn(queries, rows, k, metric);
  std::size_t hits = 0;
  for (std::size_t query = 0; query < queries.rows(); ++query)
    for (std::size_t i = 0; i < k; ++i)
      hits += found.ids(query, i) != no_id && found.distances(query, i) <= exact.distances[query * k + k - 1];
  return static_cast<double>(hits) / static_cast<double>(queries.rows() * k);
}

support::Rows normal_rows(std::size_t count, std::size_t dim, std::uint64_t seed) {
  return {support::generate(Kind::normal, count, dim, seed), ElementType::f32};
}

std::vector<Id> ids_of(const Neighbors& found) {
  return {found.ids.data(), found.ids.data() + found.ids.rows() * found.ids.cols()};
}

TEST(GraphIndexEdgeCases, ZeroVectorsDoNotHideTheOthers) {
  support::Values values = support::generate(Kind::normal, 2000, 64, 91);
  for (std::size_t row = 0; row < 60; ++row) std::ranges::fill(values.row(row), 0.0);
  const support::Rows rows(values, ElementType::f32);
  const support::Rows queries = normal_rows(100, 64, 92);
  const GraphIndex index = GraphIndex::build(one_thread(), rows, {.metric = Metric::cosine}, std::nullopt);
  const Neighbors found = index.search(one_thread(), queries, 10, {.beam = 200});
  EXPECT_GE(found_share(found, queries, rows, Metric::cosine), 0.8);
}

// 64 copies of the centre of a sphere: each vector on it has only these among its nearest.
TEST(GraphIndexEdgeCases, VectorsAroundEqualOnesAreReached) {
  constexpr std::size_t copies = 64;
  support::Values values = support::generate(Kind::normal, 2000 + copies, 64, 93);
  for (std::size_t row = 0; row < 2000 + copies; ++row) {
    double squares = 0;
    for (const double value : values.row(row)) squares += value * value;
    for (double& value : values.row(row)) value = row < copies ? 0 : value / std::sqrt(squares);
  }
  const support::Rows rows(values, ElementType::f32);
  const GraphIndex index = GraphIndex::build(one_thread(), rows, {}, std::nullopt);
  const Neighbors found =
      index.search(one_thread(), static_cast<RowsView>(rows).slice(copies, 20), 150, {.beam = 200});
  EXPECT_EQ(std::count(found.ids.data(), found.ids.data() + 20 * 150, no_id), 0);
}

TEST(GraphIndexEdgeCases, LengthsBeyondFloat) {
  Matrix<float> rows(2, 4);
  for (std::size_t i = 0; i < 8; ++i) rows.data()[i] = i < 4 ? 3e38F : 0.0F;
  EXPECT_EQ(train_codec(one_thread(), rows, Metric::inner_product).offsets.size(), 5U);
  const GraphIndex index =
      GraphIndex::build(one_thread(), rows, {.metric = Metric::inner_product}, std::nullopt);
  EXPECT_EQ(index.size(), 2U);
}

TEST(GraphIndexEdgeCases, TheLastRowsHaveEntries) {
  constexpr std::size_t count = 1000, first_of_tail = 800, dim = 8, row_bytes = 64;
  Matrix<std::uint8_t> codes(count, row_bytes);
  const Random random(1);
  for (std::size_t i = 0; i < count * row_bytes; ++i)
    codes.data()[i] =
        i % row_bytes < dim
            ? static_cast<std::uint8_t>((i / row_bytes < first_of_tail ? 10 : 200) + random.below(i, 30))
            : std::uint8_t{0};
  const EntryTree tree = EntryTree::train(one_thread(), codes.view(), dim);
  EXPECT_GE(std::ranges::max(tree.view().rows), first_of_tail);
}

TEST(GraphIndexEdgeCases, TheLastRowsAreInTheRangeOfTheCodes) {
  constexpr std::size_t dim = 4;
  Matrix<float> rows(12'000, dim);
  const Random random(2);
  for (std::size_t i = 0; i < rows.rows() * dim; ++i)
    rows.data()[i] = static_cast<float>(random.uniform(i)) + (i / dim < 8192 ? 0.0F : 10.0F);
  const ScalarCodec codec = train_codec(one_thread(), rows, Metric::sqeuclidean);
  std::vector<std::uint8_t> code(codec.row_bytes()), last(codec.row_bytes());
  std::vector<double> scratch(codec.code_dim());
  codec.encode(rows, 11'998, scratch.data(), code.data());
  codec.encode(rows, 11'999, scratch.data(), last.data());
  EXPECT_NE(code, last);
}

TEST(GraphIndexEdgeCases, OneVectorIsAddedToAnEmptyCalibratedIndex) {
  const support::Rows pool = normal_rows(300, 12, 94);
  GraphIndex index =
      GraphIndex::build(one_thread(), static_cast<RowsView>(pool).slice(0, 100), {.degree = 16});
  const std::vector<Id> ids = index.ids();
  index.remove(one_thread(), ids);
  EXPECT_EQ(index.add(one_thread(), static_cast<RowsView>(pool).slice(100, 1)), 1U);
  EXPECT_EQ(index.add(one_thread(), static_cast<RowsView>(pool).slice(101, 1)), 1U);
  EXPECT_EQ(index.size(), 2U);
}

TEST(GraphIndexEdgeCases, ABeamIsOneThatAFileCanHold) {
  const support::Rows rows = normal_rows(100, 12, 95);
  GraphIndex index = GraphIndex::build(one_thread(), rows, {.degree = 16});
  EXPECT_EQ(error_of([&] { index.set_beam(0x7FFFFFFF); }).code(), ErrorCode::invalid_argument);
  index.set_beam(0x7FFFFFFF - 100);
  const testing_io::TemporaryFolder folder;
  save(index, folder / "index.nw");
  EXPECT_EQ(load_graph_index(one_thread(), folder / "index.nw").beam(), 0x7FFFFFFFU - 100);
}

TEST(GraphIndexEdgeCases, MoreResultsThanVectorsCountAgainstTheLimit) {
  const support::Rows rows = normal_rows(10, 12, 96);
  const GraphIndex index = GraphIndex::build(one_thread(), rows, {.degree = 16}, std::nullopt);
  const Context limited = Context::cpu({.threads = 1, .memory_limit = std::uint64_t{1} << 20});
  EXPECT_EQ(error_of([&] { index.search(limited, rows, 1'000'000); }).code(), ErrorCode::out_of_memory);
}

// A graph with 4-bit codes, which indexes have from 500,000 vectors on.
SearchedGraph graph_with_nibbles(const GraphIndex& index, const RowsView& rows) {
  const SearchedGraph& made = GraphIndexInternals::state_of(index).graph;
  ScalarCodec codec = *made.rows.codec;
  train_nibbles(codec, made.rows.codes);
  const auto budget = one_thread().state().budget;
  SearchedGraph graph;
  graph.rows = GraphRows::with_capacity(*budget, std::make_shared<const ScalarCodec>(codec), rows.type(),
                                        made.rows.edges.cols(), rows.rows());
  graph.rows.write_behind(one_thread(), rows);
  std::copy_n(made.rows.edges.data(), rows.rows() * made.rows.edges.cols(), graph.rows.own_edges.data());
  graph.rows.set_count(rows.rows());
  graph.entries = EntryTree::train(one_thread(), graph.rows.codes, codec.code_dim());
  graph.prepare(one_thread(), budget);
  return graph;
}

// The best of the beam are ranked by 8 bits, whether they were collected under a filter or not.
TEST(GraphIndexEdgeCases, AllowedRowsAreRankedByAllBits) {
  const support::Rows rows(support::generate(Kind::normal, 3000, 32, 90), ElementType::u8);
  const GraphIndex index = GraphIndex::build(one_thread(), rows, {}, std::nullopt);
  const SearchedGraph graph = graph_with_nibbles(index, rows);
  const RowsView queries = static_cast<RowsView>(rows).slice(0, 50);
  const std::vector<std::uint64_t> all(bit_words(3000), ~std::uint64_t{0});
  const GraphBeam beam = {.width = 64};
  const Neighbors plain = search_rows(one_thread(), graph, queries, {.k = 10, .beam = beam});
  const Neighbors allowed =
      search_rows(one_thread(), graph, queries, {.k = 10, .beam = beam, .allowed = RowBits{all.data(), 0}});
  const double share = found_share(allowed, queries, rows, Metric::sqeuclidean);
  EXPECT_GE(share, found_share(plain, queries, rows, Metric::sqeuclidean) - 0.02);
}

// Searches in turns need memory each; a limit that leaves room for one is enough.
TEST(GraphIndexEdgeCases, ABatchNeedsTheMemoryOfOneSearch) {
  const support::Rows rows = normal_rows(20'000, 8, 97);
  const testing_io::TemporaryFolder folder;
  save(GraphIndex::build(one_thread(), rows, {.degree = 16}, std::nullopt), folder / "index.nw");
  const RowsView queries = static_cast<RowsView>(rows).slice(0, 8);
  const auto memory_of = [&](const RowsView& some) {
    const Context context = Context::cpu({.threads = 1, .memory_limit = std::uint64_t{1} << 30});
    const GraphIndex index = load_graph_index(context, folder / "index.nw");
    index.search(one_thread(), some, 10);
    return context.memory_peak();
  };
  const std::uint64_t one = memory_of(queries.slice(0, 1));
  ASSERT_GT(memory_of(queries), one);
  const Context context = Context::cpu({.threads = 1, .memory_limit = one});
  const GraphIndex limited = load_graph_index(context, folder / "index.nw");
  const GraphIndex index = load_graph_index(one_thread(), folder / "index.nw");
  EXPECT_EQ(ids_of(limited.search(one_thread(), queries, 10)),
            ids_of(index.search(one_thread(), queries, 10)));
}

// The rows that a filter allows are kept for the next search by the index, and for the offset of its ids.
TEST(GraphIndexEdgeCases, AFilterOfOtherIdsIsAnotherFilter) {
  const support::Rows rows = normal_rows(200, 12, 98);
  const GraphIndex index = GraphIndex::build(one_thread(), rows, {.degree = 16}, std::nullopt);
  const RowsView query = static_cast<RowsView>(rows).slice(0, 1);
  const std::vector<Id> allowed = {150};
  const Filter filter = Filter::allow(allowed);
  EXPECT_EQ(index.search(one_thread(), query, 1, {.filter = filter}).ids(0, 0), 150);
  EXPECT_EQ(index.search(one_thread(), query, 1, {.filter = filter.from_id(100)}).ids(0, 0), 50);
}

TEST(GraphIndexEdgeCases, NumbersOfTheCalibrationAreBounded) {
  const support::Rows rows = normal_rows(200, 12, 98);
  const testing_io::TemporaryFolder folder;
  const std::filesystem::path path = folder / "index.nw";
  save(GraphIndex::build(one_thread(), rows, {.degree = 16}), path);
  const auto load = [](const std::filesystem::path& file) { load_graph_index(one_thread(), file); };
  for (const char* const number : {"/calibration/neighbors", "/calibration/beam", "/calibration/beam_of_100"})
    testing_io::expect_bound(path, number, max_graph_rows, load);
  for (const char* const number : {"/calibration/recall/rows", "/calibration/recall_of_100/rows"})
    testing_io::expect_bound(path, number, most_metadata_number, load);
}

// A forged file with a neighbour twice in a list.
TEST(GraphIndexEdgeCases, ARepeatedEdgeGivesEachVectorOnce) {
  const support::Rows rows = normal_rows(300, 12, 99);
  const testing_io::TemporaryFolder folder;
  save(GraphIndex::build(one_thread(), rows, {.degree = 16}, std::nullopt), folder / "index.nw");
  std::vector<std::byte> bytes = testing_io::read_all(folder / "index.nw");
  const ContainerInfo info = inspect(folder / "index.nw");
  const auto edges = std::ranges::find(info.sections, "edges", &SectionInfo::name);
  for (std::uint64_t first = edges->offset; first < edges->offset + edges->bytes; first += 16 * 4)
    for (std::size_t i = 1; i < 4; ++i) std::copy_n(bytes.begin() + first, 4, bytes.begin() + first + 4 * i);
  testing_io::reseal(bytes);
  testing_io::write_all(folder / "forged.nw", bytes);
  std::vector<Id> expected;
  for (const std::string& isa : instruction_sets()) {
    const Context context = Context::cpu({.threads = 1, .isa = isa});
    const Neighbors found =
        load_graph_index(context, folder / "forged.nw").search(context, rows, 10, {.beam = 20});
    for (std::size_t query = 0; query < 300; ++query) {
      std::vector<Id> ids(found.ids.row(query).begin(), found.ids.row(query).end());
      std::erase(ids, no_id);
      std::ranges::sort(ids);
      ASSERT_EQ(std::ranges::adjacent_find(ids), ids.end()) << isa << ", query " << query;
    }
    if (expected.empty()) expected = ids_of(found);
    EXPECT_EQ(ids_of(found), expected) << isa;
  }
}

}  // namespace
}  // namespace nearwise::graph_index
