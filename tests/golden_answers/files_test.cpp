// Files of vectors and of neighbours: the bytes written, and what is read of them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <utility>

#include "golden_answers/data.h"
#include "golden_answers/golden.h"
#include "io/temporary_folder.h"
#include "nearwise/exact.h"
#include "nearwise/storage.h"
#include "nearwise/vector_file.h"

namespace nearwise::golden {
namespace {

using support::Rows;
using testing_io::TemporaryFolder;

TEST(GoldenFiles, Vectors) {
  const TemporaryFolder folder;
  const std::pair<const char*, ElementType> formats[] = {
      {"npy", ElementType::f32},    {"npy", ElementType::f16},      {"npy", ElementType::bf16},
      {"npy", ElementType::u8},     {"npy", ElementType::i8},       {"fbin", ElementType::f32},
      {"f16bin", ElementType::f16}, {"bf16bin", ElementType::bf16}, {"u8bin", ElementType::u8},
      {"i8bin", ElementType::i8},   {"fvecs", ElementType::f32},    {"bvecs", ElementType::u8},
  };
  for (const auto& [suffix, type] : formats) {
    const Rows rows = make_rows(101, 19, 71, type, support::Layout::padded);
    const std::string name = fmt::format("file.vectors.{}.{}", suffix, nearwise::name(type));
    const std::filesystem::path path = folder / (std::string(nearwise::name(type)) + "." + suffix);
    VectorWriter writer(path, type, 19);
    writer.append(rows.view().slice(0, 40));
    writer.append(rows.view().slice(40, 61));
    writer.commit();
    expect(name, [&](Digest& digest) { digest.add_file(path); });
    const VectorFile file = VectorFile::open(path);
    expect(name + ".mapped", [&](Digest& digest) { digest.add_rows(file.rows()); });
    expect(name + ".read", [&](Digest& digest) {
      VectorReader reader(path, 1000);
      for (RowsView some = reader.next(); some.rows() != 0; some = reader.next()) digest.add_rows(some);
    });
  }
}

TEST(GoldenFiles, Neighbors) {
  const TemporaryFolder folder;
  const Neighbors found = knn(context(), make_rows(33, 19, 2), make_rows(500, 19, 1), 10);
  for (const char* const suffix : {"ivecs", "ibin", "npy", "bin"}) {
    const std::filesystem::path path = folder / (std::string("found.") + suffix);
    write_neighbors(path, found);
    expect(fmt::format("file.neighbors.{}", suffix), [&](Digest& digest) { digest.add_file(path); });
    expect_answer(fmt::format("file.neighbors.{}.read", suffix), read_neighbors(path));
  }
  SavedNeighbors saved;
  saved.neighbors =
      knn(context(), make_rows(33, 19, 2), make_rows(500, 19, 1), 10, {.metric = Metric::cosine});
  saved.metric = Metric::cosine;
  saved.provenance = {{"base", "made"}, {"command", "knn"}};
  save(saved, folder / "found.nw");
  expect_container("file.neighbors", folder / "found.nw");
  expect_answer("file.neighbors.loaded", load_neighbors(folder / "found.nw").neighbors);
}

}  // namespace
}  // namespace nearwise::golden
