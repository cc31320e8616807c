// Files that are truncated while they are mapped: reading, verifying and copying them are errors.
#include <gtest/gtest.h>

#include <vector>

#include "io/container/container_reader.h"
#include "io/container/container_writer.h"
#include "io/expect_error.h"
#include "io/files/mapped_file.h"
#include "io/temporary_folder.h"
#include "io/truncating_calls.h"
#include "nearwise/storage.h"
#include "nearwise/vector_file.h"

namespace nearwise {
namespace {

using testing_io::TemporaryFolder;
using testing_io::truncate_in_place;
using testing_io::TruncatingCalls;
namespace fs = std::filesystem;

constexpr const char* message = "the file was truncated while in use";

SavedNeighbors sample() {
  SavedNeighbors result{{Matrix<Id>(5000, 3), Matrix<float>(5000, 3)}, Metric::sqeuclidean, {}};
  std::fill_n(result.neighbors.ids.data(), 15000, 1);
  std::fill_n(result.neighbors.distances.data(), 15000, 1.0F);
  return result;
}

void write_vectors(const fs::path& path, std::size_t rows, std::size_t dim) {
  const std::vector<float> values(rows * dim, 1.0F);
  VectorWriter writer(path, ElementType::f32, dim);
  writer.append(MatrixView<const float>(values.data(), rows, dim));
  writer.commit();
}

// Would catch: a reader that gives out what it has read of a file without its end, or dies.
TEST(TruncatedFile, WhileItIsRead) {
  const TemporaryFolder folder;
  const SavedNeighbors result = sample();
  for (const std::uint64_t kept : {0, 4096, 8192, 98'304}) {
    const TruncatingCalls calls(kept);
    for (const char* const suffix : {".ivecs", ".ibin", ".npy", ".bin"}) {
      const fs::path path = folder / (std::string("ids") + suffix);
      write_neighbors(path, result.neighbors);
      if (fs::file_size(path) <= kept + 4096) continue;  // .ivecs and .ibin are short
      EXPECT_ERROR(read_neighbors(path), corrupt, message);
    }
    const fs::path path = folder / "result.nw";
    save(result, path);
    EXPECT_ERROR(load_neighbors(path), corrupt, message);
    save(result, path);
    EXPECT_ERROR(verify(path), corrupt, message);
    if (kept <= 8192) {
      save(result, path);
      EXPECT_ERROR(inspect(path), corrupt, message);
    }
    for (const char* const suffix : {".fvecs", ".fbin", ".npy"}) {
      const fs::path vectors = folder / (std::string("vectors") + suffix);
      write_vectors(vectors, 5000, 10);
      // Opening reads the row prefixes of .fvecs, and only the first bytes of others.
      if (kept == 0 || suffix == std::string(".fvecs"))
        EXPECT_ERROR(VectorFile::open(vectors), corrupt, message);
      else
        EXPECT_EQ(VectorFile::open(vectors).rows().rows(), 5000U);
    }
  }
}

TEST(TruncatedFile, AfterItWasVerified) {
  const TemporaryFolder folder;
  save(sample(), folder / "result.nw");
  const ContainerReader reader = ContainerReader::open(folder / "result.nw");
  reader.verify();
  truncate_in_place(folder / "result.nw", 8192);
  const auto ids = reader.section("ids").rows<Id>();  // nothing is read again
  EXPECT_ERROR(
      {
        const LostPagesScope scope;
        static_cast<void>(copy_of(ids));
      },
      corrupt, message);
  EXPECT_ERROR(static_cast<void>(reader.section("ids").rows<Id>()), corrupt, message);
}

// Would catch: a copy of zeros under right checksums.
TEST(TruncatedFile, WhileItIsCopied) {
  const TemporaryFolder folder;
  for (const std::size_t dim : {10, 100'000}) {  // rows through the buffer, and past it
    write_vectors(folder / "vectors.fbin", 1'000'000 / dim, dim);
    const VectorFile file = VectorFile::open(folder / "vectors.fbin");
    truncate_in_place(folder / "vectors.fbin", 2'000'000);
    {
      VectorWriter writer(folder / "copy.fbin", ElementType::f32, dim);
      EXPECT_ERROR(writer.append(file.rows()), corrupt, message);
      EXPECT_ERROR(writer.commit(), io, "discarded");
    }
    {
      ContainerWriter writer(folder / "copy.nw", "copy");
      EXPECT_ERROR(writer.write_section(
                       "vectors", MatrixView<const float>(reinterpret_cast<const float*>(file.rows().data()),
                                                          file.rows().rows(), dim)),
                   corrupt, message);
    }
    EXPECT_EQ(folder.names(), std::vector<std::string>{"vectors.fbin"});
  }
}

TEST(TruncatedFile, OthersStayWhatTheyAre) {
  const TemporaryFolder folder;
  write_vectors(folder / "a.fbin", 5000, 10);
  write_vectors(folder / "b.fbin", 5000, 10);
  const VectorFile damaged = VectorFile::open(folder / "a.fbin");
  const VectorFile sound = VectorFile::open(folder / "b.fbin");
  truncate_in_place(folder / "a.fbin", 4096);
  VectorWriter lost(folder / "c.fbin", ElementType::f32, 10);
  EXPECT_ERROR(lost.append(damaged.rows()), corrupt, "a.fbin: " + std::string(message));
  VectorWriter writer(folder / "d.fbin", ElementType::f32, 10);
  writer.append(sound.rows());
  writer.commit();
  EXPECT_EQ(testing_io::read_all(folder / "d.fbin"), testing_io::read_all(folder / "b.fbin"));
}

}  // namespace
}  // namespace nearwise
