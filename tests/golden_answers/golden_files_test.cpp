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
#include "nearwise/additive_quantizer.h"
#include "nearwise/exact.h"
#include "nearwise/ivf.h"
#include "nearwise/knn_graph.h"
#include "nearwise/optimized_product_quantizer.h"
#include "nearwise/product_quantizer.h"
#include "nearwise/storage.h"

namespace nearwise::golden {
namespace {

namespace fs = std::filesystem;
using support::Rows;

struct GoldenFile {
  std::string name;
  std::string kind;
  std::function<void(const fs::path&)> write;
  std::function<void(Digest&, const fs::path&)> use;
};

Rows base() { return make_rows(300, 6, 81); }
Rows queries() { return make_rows(7, 6, 82); }

GoldenFile ivf_file(const std::string& name, const Encoding& encoding) {
  return {name, "ivf",
          [encoding](const fs::path& path) {
            const Rows rows = base();
            const IvfOptions options = {.metric = Metric::euclidean, .lists = 5, .encoding = encoding};
            save(
                Ivf::build(context(), rows, options, CalibrationOptions{.target_recall = 0.9, .queries = 20}),
                path);
          },
          [](Digest& digest, const fs::path& path) {
            const Ivf index = load_ivf(context(), path);
            digest.add(index.search(context(), queries(), 4));
            digest.add(index.search(context(), queries(), 4, {.probes = 5}));
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
      ivf_file("ivf_flat", Flat{}),
      ivf_file("ivf_pq", Pq{.code_bytes = 3, .bits = 4}),
      ivf_file("ivf_lsq", Lsq{.code_bytes = 2, .rounds = 1}),
      {"graph", "graph",
       [](const fs::path& path) {
         save(build_knn_graph(context(), base(), {.degree = 5}), path,
              {{"command", "made for tests/golden"}});
       },
       [](Digest& digest, const fs::path& path) {
         const KnnGraph graph = load_knn_graph(path);
         digest.add(graph.neighbors);
         digest.add(graph.report.recall.value);
       }},
      {"product_quantizer", "product_quantizer",
       [=](const fs::path& path) { save(ProductQuantizer::train(context(), base(), product), path); },
       [](Digest& digest, const fs::path& path) { add_codes(digest, load_product_quantizer(path)); }},
      {"optimized_product_quantizer", "product_quantizer",
       [=](const fs::path& path) {
         save(OptimizedProductQuantizer::train(context(), base(), {.quantizer = product, .rounds = 2}), path);
       },
       [](Digest& digest, const fs::path& path) {
         add_codes(digest, load_optimized_product_quantizer(path));
       }},
      {"additive_quantizer", "additive_quantizer",
       [](const fs::path& path) {
         save(AdditiveQuantizer::train(context(), base(), {.codebooks = 1, .rounds = 1}), path);
       },
       [](Digest& digest, const fs::path& path) { add_codes(digest, load_additive_quantizer(path)); }},
  };
}

std::uint64_t sections_of(const fs::path& path) {
  Digest digest;
  digest.add_sections(path);
  return digest.value();
}

TEST(GoldenFiles, OfVersion1_0) {
  std::set<std::string> kinds = {
      "neighbors"};  // NeighborsOfVersion1_0 in tests/io/container/storage_test.cpp
  const testing_io::TemporaryFolder folder;
  const char* const output = std::getenv("NEARWISE_WRITE_GOLDEN_FILES");
  for (const GoldenFile& file : golden_files()) {
    const std::string name = file.name + "_1_0.nw";
    if (output != nullptr) {
      file.write(fs::path(output) / name);
      continue;
    }
    const fs::path path = fs::path(NEARWISE_GOLDEN_FILES) / name;
    const ContainerInfo info = verify(path);
    EXPECT_EQ(info.kind, file.kind) << name;
    EXPECT_EQ(fmt::format("{}.{}", info.version_major, info.version_minor), "1.0") << name;
    kinds.insert(info.kind);
    expect("golden_file." + file.name, [&](Digest& digest) { file.use(digest, path); });
    // Today's writer still writes the same sections for it.
    file.write(folder / name);
    EXPECT_EQ(sections_of(folder / name), sections_of(path)) << name;
  }
  if (output != nullptr) GTEST_SKIP() << "wrote golden files to " << output;
  // docs/format.md has these kinds.
  EXPECT_EQ(kinds,
            (std::set<std::string>{"additive_quantizer", "graph", "ivf", "neighbors", "product_quantizer"}));
}

}  // namespace
}  // namespace nearwise::golden
