// Files of released format versions (tests/golden): they are readable for ever. Never rewrite one: a version
// that changes the format adds files of its own. NEARWISE_WRITE_GOLDEN_FILES=FOLDER writes those of today.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <set>

#include "golden_answers/data.h"
#include "golden_answers/golden.h"
#include "io/temporary_folder.h"
#include "nearwise/exact.h"
#include "nearwise/graph/knn_graph.h"
#include "nearwise/graph_index.h"
#include "nearwise/ivf.h"
#include "nearwise/quantize/additive_quantizer.h"
#include "nearwise/quantize/optimized_product_quantizer.h"
#include "nearwise/quantize/product_quantizer.h"
#include "nearwise/storage.h"
#include "nearwise/vector_file.h"

namespace nearwise::golden {
namespace {

namespace fs = std::filesystem;
using support::Rows;

struct GoldenFile {
  std::string name;  // with the format version that it was written in
  std::string kind;
  std::function<void(const fs::path&)> write;
  std::function<void(Digest&, const fs::path&)> use;
};

Rows base() { return make_rows(300, 6, 81); }
Rows queries() { return make_rows(7, 6, 82); }

void use_ivf(Digest& digest, const fs::path& path) {
  const Ivf index = load_ivf(context(), path);
  digest.add(index.search(context(), queries(), 4));
  digest.add(index.search(context(), queries(), 4, {.probes = 5}));
}

GoldenFile ivf_file(const std::string& name, const Encoding& encoding, VectorStorage vectors) {
  return {name, "ivf",
          [encoding, vectors](const fs::path& path) {
            const Rows rows = base();
            const IvfOptions options = {
                .metric = Metric::euclidean, .lists = 5, .encoding = encoding, .vectors = vectors};
            save(
                Ivf::build(context(), rows, options, CalibrationOptions{.target_recall = 0.9, .queries = 20}),
                path);
          },
          use_ivf};
}

// Its vectors are in a file beside it.
GoldenFile linked_ivf_file(const std::string& name) {
  return {name, "ivf",
          [](const fs::path& path) {
            const Rows rows = base();
            const fs::path vectors = path.parent_path() / "vectors.fbin";
            VectorWriter writer(vectors, ElementType::f32, 6);
            writer.append(rows);
            writer.commit();
            const IvfOptions options = {.lists = 5,
                                        .encoding = Pq{.code_bytes = 3, .bits = 4},
                                        .vectors = VectorStorage::file,
                                        .vector_file = vectors};
            save(
                Ivf::build(context(), rows, options, CalibrationOptions{.target_recall = 0.9, .queries = 20}),
                path);
          },
          use_ivf};
}

// A file whose index can no longer be built: its calibration re-ranked by vectors that it does not keep.
GoldenFile former_ivf_file(const std::string& name) {
  return {name, "ivf",
          [name](const fs::path& path) {
            save(load_ivf(context(), fs::path(NEARWISE_GOLDEN_FILES) / (name + ".nw")), path);
          },
          use_ivf};
}

GoldenFile graph_index_file(const std::string& name, ElementType type, bool is_changed = false) {
  return {name, "graph_index",
          [type, is_changed](const fs::path& path) {
            const Rows rows = make_rows(300, 6, 81, type);
            std::vector<Id> ids(300);
            for (std::size_t row = 0; row < 300; ++row) ids[row] = static_cast<Id>(3 * row + 1);
            GraphIndex index = GraphIndex::build(context(), rows, {.degree = 16, .ids = ids},
                                                 GraphCalibrationOptions{.target_recall = 0.9, .sample = 50});
            if (is_changed) {
              index.remove(context(), std::vector<Id>{1, 40, 898});
              index.add(context(), make_rows(3, 6, 83, type), std::vector<Id>{2, 40, 1000});
            }
            save(index, path);
          },
          [type](Digest& digest, const fs::path& path) {
            const Rows asked = make_rows(7, 6, 82, type);
            const GraphIndex index = load_graph_index(context(), path);
            digest.add(index.search(context(), asked, 4));
            digest.add(index.search(context(), asked, 4, {.beam = 100}));
          }};
}

template <typename Quantizer>
void add_codes(Digest& digest, const Quantizer& quantizer) {
  const Matrix<std::uint8_t> codes = quantizer.encode(context(), base());
  digest.add(codes);
  digest.add(quantizer.decode(context(), codes));
}

std::vector<GoldenFile> golden_files() {
  const ProductQuantizerOptions product = {.parts = 3, .bits = 4, .iterations = 3};
  return {
      ivf_file("ivf_flat_1_0", Flat{}, VectorStorage::keep),
      former_ivf_file("ivf_pq_1_0"),
      former_ivf_file("ivf_lsq_1_0"),
      ivf_file("ivf_pq_keep_1_1", Pq{.code_bytes = 3, .bits = 4}, VectorStorage::keep),
      ivf_file("ivf_pq_f16_1_1", Pq{.code_bytes = 3, .bits = 4}, VectorStorage::f16),
      ivf_file("ivf_flat_1_1", Flat{}, VectorStorage::keep),
      ivf_file("ivf_lsq_u8_1_1", Lsq{.code_bytes = 2, .rounds = 1}, VectorStorage::u8),
      linked_ivf_file("ivf_pq_linked_1_3"),
      {"graph_1_0", "graph",
       [](const fs::path& path) {
         save(build_knn_graph(context(), base(), {.degree = 5}), path,
              {{"command", "made for tests/golden"}});
       },
       [](Digest& digest, const fs::path& path) {
         const KnnGraph graph = load_knn_graph(path);
         digest.add(graph.neighbors);
         digest.add(graph.report.recall.value);
       }},
      graph_index_file("graph_index_1_2", ElementType::f32),
      graph_index_file("graph_index_u8_1_2", ElementType::u8),
      graph_index_file("graph_index_changed_1_4", ElementType::f32, true),
      {"product_quantizer_1_0", "product_quantizer",
       [=](const fs::path& path) { save(ProductQuantizer::train(context(), base(), product), path); },
       [](Digest& digest, const fs::path& path) { add_codes(digest, load_product_quantizer(path)); }},
      {"optimized_product_quantizer_1_0", "product_quantizer",
       [=](const fs::path& path) {
         save(OptimizedProductQuantizer::train(context(), base(), {.quantizer = product, .rounds = 2}), path);
       },
       [](Digest& digest, const fs::path& path) {
         add_codes(digest, load_optimized_product_quantizer(path));
       }},
      {"names_1_1", "names",
       [](const fs::path& path) {
         save(SavedNames{.offsets = {0, 5, 5, 12}, .text = "first\xC3\xA9t\xC3\xA9 2"}, path);
       },
       [](Digest& digest, const fs::path& path) {
         const SavedNames names = load_names(path);
         digest.add(names.offsets);
         digest.add(names.text);
       }},
      {"pairs_1_5", "pairs",
       [](const fs::path& path) {
         save(SavedPairs{.pairs = threshold_join(context(), base(), 3.0F), .threshold = 3.0F}, path);
       },
       [](Digest& digest, const fs::path& path) { digest.add(load_pairs(path).pairs); }},
      {"deduplication_1_5", "deduplication",
       [](const fs::path& path) {
         save(SavedDeduplication{.deduplication = dedup(context(), base(), 3.0F), .threshold = 3.0F}, path);
       },
       [](Digest& digest, const fs::path& path) {
         const Deduplication found = load_deduplication(path).deduplication;
         digest.add(RangeNeighbors{{found.kept.size(), found.pairs}, found.removed_by, found.distances});
         digest.add(RangeNeighbors{{}, found.groups, {}});
       }},
      {"additive_quantizer_1_0", "additive_quantizer",
       [](const fs::path& path) {
         save(AdditiveQuantizer::train(context(), base(), {.codebooks = 1, .rounds = 1}), path);
       },
       [](Digest& digest, const fs::path& path) { add_codes(digest, load_additive_quantizer(path)); }},
  };
}

// Digests of files of version 1.0 are recorded without it.
std::string without_version(const std::string& name) {
  return name.ends_with("_1_0") ? name.substr(0, name.size() - 4) : name;
}

std::uint64_t sections_of(const fs::path& path) {
  Digest digest;
  digest.add_sections(path);
  return digest.value();
}

TEST(GoldenFiles, OfEveryVersion) {
  std::set<std::string> kinds = {
      "neighbors"};  // NeighborsOfVersion1_0 in tests/io/container/storage_test.cpp
  const testing_io::TemporaryFolder folder;
  const char* const output = std::getenv("NEARWISE_WRITE_GOLDEN_FILES");
  for (const GoldenFile& file : golden_files()) {
    const std::string name = file.name + ".nw";
    if (output != nullptr) {
      file.write(fs::path(output) / name);
      continue;
    }
    const fs::path path = fs::path(NEARWISE_GOLDEN_FILES) / name;
    const ContainerInfo info = verify(path);
    EXPECT_EQ(info.kind, file.kind) << name;
    EXPECT_TRUE(file.name.ends_with(fmt::format("_{}_{}", info.version_major, info.version_minor))) << name;
    kinds.insert(info.kind);
    expect("golden_file." + without_version(file.name), [&](Digest& digest) { file.use(digest, path); });
    // Today's writer still writes the same sections for it.
    file.write(folder / name);
    EXPECT_EQ(sections_of(folder / name), sections_of(path)) << name;
  }
  if (output != nullptr) GTEST_SKIP() << "wrote golden files to " << output;
  // docs/format.md has these kinds.
  EXPECT_EQ(kinds, (std::set<std::string>{"additive_quantizer", "deduplication", "graph", "graph_index",
                                          "ivf", "names", "neighbors", "pairs", "product_quantizer"}));
}

}  // namespace
}  // namespace nearwise::golden
