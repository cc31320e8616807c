// Saving and loading of every kind of file with every call failing once.
#include <gtest/gtest.h>

#include <any>
#include <vector>

#include "faults/fault_kit.h"
#include "faults/samples.h"
#include "nearwise/dedup.h"

namespace nearwise::faults {
namespace {

using testing_io::read_all;
using testing_io::TemporaryFolder;
using testing_io::write_all;
namespace fs = std::filesystem;

// A kind of file.
struct Kind {
  std::string name;
  std::string file;
  std::function<void(const fs::path&)> save;
  std::function<std::any(const fs::path&)> load;
  std::function<bool(const std::any&)> is_right;
};

// Keeps a loaded object, which need not be copyable, and compares what it saves with what was loaded.
template <typename Load, typename Save>
Kind kind(const std::string& name, const Save& save_it, const Load& load_it) {
  using Object = decltype(load_it(fs::path()));
  return {name, name + ".nw", save_it,
          [load_it](const fs::path& path) -> std::any { return std::make_shared<Object>(load_it(path)); },
          [](const std::any& loaded) { return std::any_cast<std::shared_ptr<Object>>(loaded) != nullptr; }};
}

std::vector<Kind> kinds() {
  std::vector<Kind> all;
  all.push_back(kind(
      "graph", [](const fs::path& path) { save(graph(), path); },
      [](const fs::path& path) { return load_knn_graph(path); }));
  all.push_back(kind(
      "product_quantizer", [](const fs::path& path) { save(product(), path); },
      [](const fs::path& path) { return load_product_quantizer(path); }));
  all.push_back(kind(
      "optimized_product_quantizer", [](const fs::path& path) { save(optimized(), path); },
      [](const fs::path& path) { return load_optimized_product_quantizer(path); }));
  all.push_back(kind(
      "additive_quantizer", [](const fs::path& path) { save(additive(), path); },
      [](const fs::path& path) { return load_additive_quantizer(path); }));
  for (const Encoding& encoding : {flat(), pq(), lsq()})
    all.push_back(kind(
        "index" + std::to_string(encoding.index()),
        [made = std::make_shared<Ivf>(make_index(encoding))](const fs::path& path) { save(*made, path); },
        [](const fs::path& path) {
          Ivf index = load_ivf(Context::cpu({.threads = 2}), path);
          index.search(maker(), some(), 4);
          return index;
        }));
  all.push_back(kind(
      "neighbors",
      [](const fs::path& path) {
        save(SavedNeighbors{knn(maker(), some(), vectors(), 3), Metric::sqeuclidean, {{"command", "knn"}}},
             path);
      },
      [](const fs::path& path) { return load_neighbors(path); }));
  all.push_back(kind(
      "names",
      [](const fs::path& path) {
        save(SavedNames{.offsets = {0, 5000, 5001}, .text = std::string(5000, 'a') + "b"}, path);
      },
      [](const fs::path& path) { return load_names(path); }));
  all.push_back(kind(
      "pairs",
      [](const fs::path& path) {
        save(SavedPairs{.pairs = threshold_join(maker(), vectors(), 4.0F), .threshold = 4.0F}, path);
      },
      [](const fs::path& path) { return load_pairs(path); }));
  all.push_back(kind(
      "deduplication",
      [](const fs::path& path) {
        save(SavedDeduplication{.deduplication = dedup(maker(), vectors(), 4.0F), .threshold = 4.0F}, path);
      },
      [](const fs::path& path) { return load_deduplication(path); }));
  all.push_back(kind(
      "verified", [](const fs::path& path) { save(graph(), path); },
      [](const fs::path& path) { return verify(path); }));
  for (const char* const suffix : {".ivecs", ".ibin", ".bin"}) {
    all.push_back(kind(
        "ids", [](const fs::path& path) { write_neighbors(path, knn(maker(), some(), vectors(), 3)); },
        [](const fs::path& path) { return read_neighbors(path); }));
    all.back().file = std::string("ids") + suffix;
  }
  for (const char* const suffix : {".npy", ".fbin", ".fvecs"}) {
    all.push_back(kind(
        "vectors", [](const fs::path& path) { write_vectors(path); },
        [](const fs::path& path) { return VectorFile::open(path); }));
    all.back().file = std::string("vectors") + suffix;
    all.push_back(kind(
        "vectors in chunks", [](const fs::path& path) { write_vectors(path); },
        [](const fs::path& path) {
          VectorReader reader(path, 1000);
          std::size_t rows = 0;
          for (RowsView next = reader.next(); next.rows() != 0; next = reader.next()) rows += next.rows();
          return rows;
        }));
    all.back().file = std::string("chunks") + suffix;
  }
  all.push_back(kind(
      "csr", [](const fs::path& path) { save_csr(graph(), path); }, [](const fs::path&) { return 0; }));
  all.back().file = "graph.npz";
  return all;
}

// Would catch: a torn or half-written file, a temporary that stays, an error without its path.
TEST(FaultsOfFiles, SavingLeavesTheOldFileOrTheNew) {
  const TemporaryFolder folder;
  for (const Kind& each : kinds()) {
    const fs::path path = folder / each.file;
    each.save(path);
    const auto written = read_all(path);
    const std::vector<std::byte> old(5000, std::byte{'o'});
    const Attempt attempt = {.name = "save " + each.file,
                             .prepare = [&] { write_all(path, old); },
                             .run = [&] { each.save(path); },
                             // After the last step, the sync of the folder, the new file is in place.
                             .expect_before =
                                 [&] {
                                   const auto found = read_all(path);
                                   EXPECT_TRUE(found == old || found == written);
                                 },
                             .expect_result = [&] { EXPECT_EQ(read_all(path), written); }};
    // The folder, the temporary, a write, its sync, the renaming and the sync of the folder at least.
    EXPECT_GE(FaultKit(folder.path()).apart(1.1).run_all(attempt), 6) << each.file;
    fs::remove(path);
  }
}

TEST(FaultsOfFiles, LoadingSucceedsTheNextTime) {
  const TemporaryFolder folder;
  for (const Kind& each : kinds()) {
    const fs::path path = folder / each.file;
    each.save(path);
    const auto written = read_all(path);
    std::any loaded;
    const Attempt attempt = {.name = "load " + each.file,
                             .prepare = [&] { loaded.reset(); },
                             .run = [&] { loaded = each.load(path); },
                             .expect_before = [&] { EXPECT_FALSE(loaded.has_value()); },
                             .expect_result =
                                 [&] {
                                   EXPECT_TRUE(loaded.has_value() && each.is_right(loaded));
                                   EXPECT_EQ(read_all(path), written);
                                 }};
    const int faults = FaultKit(folder.path()).apart(1.1).run_all(attempt);
    EXPECT_GE(faults, each.file == "graph.npz" ? 0 : 2) << each.file;  // which is only written
  }
}

}  // namespace
}  // namespace nearwise::faults
