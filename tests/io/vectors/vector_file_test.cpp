// Files of vectors and of ids: what is written comes back, in every format and type.
#include "nearwise/vector_file.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cstring>
#include <limits>

#include "io/expect_error.h"
#include "io/failing_calls.h"
#include "io/temporary_folder.h"
#include "nearwise/storage.h"

namespace nearwise {
namespace {

using testing_io::FailingCalls;
using testing_io::read_all;
using testing_io::TemporaryFolder;
using testing_io::write_all;
namespace fs = std::filesystem;

struct FormatCase {
  const char* suffix;
  ElementType type;
  bool rows_apart = false;  // a dim in front of each row
};

constexpr FormatCase formats[] = {
    {".npy", ElementType::f32},    {".npy", ElementType::f16},         {".npy", ElementType::bf16},
    {".npy", ElementType::u8},     {".npy", ElementType::i8},          {".fbin", ElementType::f32},
    {".f16bin", ElementType::f16}, {".bf16bin", ElementType::bf16},    {".u8bin", ElementType::u8},
    {".i8bin", ElementType::i8},   {".fvecs", ElementType::f32, true}, {".bvecs", ElementType::u8, true},
};

struct Shape {
  std::size_t rows, dim;
};
constexpr Shape shapes[] = {{0, 7}, {1, 1}, {1, 9}, {5, 1}, {3, 100'000}, {1001, 17}};

// Packed rows of arbitrary bits.
std::vector<std::byte> make_rows(std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 2654435761U >> 11);
  return data;
}

void expect_rows(RowsView rows, std::span<const std::byte> packed, std::size_t first = 0) {
  const std::size_t row_bytes = rows.dim() * element_size(rows.type());
  for (std::size_t row = 0; row < rows.rows(); ++row)
    ASSERT_EQ(std::memcmp(rows.row(row), packed.data() + (first + row) * row_bytes, row_bytes), 0)
        << "row " << row;
}

TEST(VectorFile, FilesThatSayWhatTheyAreHaveAnyName) {
  const TemporaryFolder folder;
  const float values[] = {0, 1, 2, 3, 4, 5};
  const MatrixView<const float> rows(values, 3, 2);
  VectorWriter writer(folder / "rows.npy", ElementType::f32, 2);
  writer.append(rows);
  writer.commit();
  Neighbors neighbors{Matrix<Id>(3, 1), Matrix<float>(3, 1)};
  for (std::size_t row = 0; row < 3; ++row) {
    neighbors.ids(row, 0) = static_cast<Id>(row);
    neighbors.distances(row, 0) = values[row];
  }
  write_neighbors(folder / "ids.npy", neighbors);
  save({.neighbors = std::move(neighbors), .metric = Metric::euclidean, .provenance = {}},
       folder / "saved.nw");
  for (const char* const name : {"plain", "of.dat", "of.fbin", "of.bvecs", "of.bin", "of.nw"}) {
    const fs::path path = folder / name;
    fs::copy_file(folder / "rows.npy", path, fs::copy_options::overwrite_existing);
    const VectorFile file = VectorFile::open(path);
    ASSERT_EQ(file.rows().rows(), 3U) << name;
    expect_rows(file.rows(), std::as_bytes(std::span(values)));
    VectorReader reader(path, 1 << 20);
    expect_rows(reader.next(), std::as_bytes(std::span(values)));
    EXPECT_ERROR(read_neighbors(path), invalid_argument, "ids expected");
    fs::copy_file(folder / "ids.npy", path, fs::copy_options::overwrite_existing);
    EXPECT_EQ(read_neighbors(path).ids(2, 0), 2) << name;
    EXPECT_ERROR(VectorFile::open(path), invalid_argument, "vectors expected");
  }
  for (const char* const name : {"plain", "of.npy", "of.fbin", "of.bin"}) {
    const fs::path path = folder / name;
    fs::copy_file(folder / "saved.nw", path, fs::copy_options::overwrite_existing);
    EXPECT_EQ(read_neighbors(path).distances(2, 0), 2) << name;
    EXPECT_ERROR(VectorFile::open(path), invalid_argument, "a file of vectors expected");
    EXPECT_ERROR(VectorReader(path, 100), invalid_argument, "a file of vectors expected");
  }
  // Others are what their suffix says.
  write_all(folder / "of.npy", std::vector<std::byte>(20));
  EXPECT_ERROR(VectorFile::open(folder / "of.npy"), corrupt, "of.npy");
  write_all(folder / "plain", std::vector<std::byte>(20));
  EXPECT_ERROR(VectorFile::open(folder / "plain"), invalid_argument, "one of the suffixes");
}

TEST(VectorFile, RoundTripOfEveryFormat) {
  const TemporaryFolder folder;
  for (const FormatCase& format : formats) {
    for (const Shape& shape : shapes) {
      SCOPED_TRACE(std::string(format.suffix) + " " + std::string(name(format.type)) + " " +
                   std::to_string(shape.rows) + " x " + std::to_string(shape.dim));
      const fs::path path = folder / (std::string("a") + format.suffix);
      const std::size_t row_bytes = shape.dim * element_size(format.type);
      const auto data = make_rows(shape.rows * row_bytes);
      {
        VectorWriter writer(path, format.type, shape.dim);
        // In two parts, the second one with gaps between the rows.
        const std::size_t half = shape.rows / 2;
        writer.append({data.data(), format.type, half, shape.dim, row_bytes});
        std::vector<std::byte> gaps((shape.rows - half) * (row_bytes + 3));
        for (std::size_t row = half; row < shape.rows; ++row)
          std::memcpy(gaps.data() + (row - half) * (row_bytes + 3), data.data() + row * row_bytes, row_bytes);
        writer.append({gaps.data(), format.type, shape.rows - half, shape.dim, row_bytes + 3});
        writer.commit();
      }
      const std::size_t dim = shape.rows == 0 && format.rows_apart ? 0 : shape.dim;
      const VectorFile file = VectorFile::open(path);
      EXPECT_EQ(file.path(), path);
      EXPECT_EQ(file.rows().type(), format.type);
      EXPECT_EQ(file.rows().rows(), shape.rows);
      EXPECT_EQ(file.rows().dim(), dim);
      if (shape.rows != 0) {
        EXPECT_EQ(file.rows().stride_bytes(), row_bytes + (format.rows_apart ? 4 : 0));
      }
      expect_rows(file.rows(), data);

      for (const std::size_t max_bytes : {std::size_t{1}, 3 * row_bytes + 20, std::size_t{1} << 30}) {
        VectorReader reader(path, max_bytes);
        EXPECT_EQ(reader.type(), format.type);
        EXPECT_EQ(reader.rows(), shape.rows);
        EXPECT_EQ(reader.dim(), dim);
        std::size_t row = 0;
        for (RowsView chunk = reader.next(); chunk.rows() != 0; chunk = reader.next()) {
          EXPECT_TRUE(chunk.rows() == 1 || chunk.rows() * chunk.stride_bytes() <= max_bytes);
          expect_rows(chunk, data, row);
          row += chunk.rows();
        }
        EXPECT_EQ(row, shape.rows);
        EXPECT_EQ(reader.next().rows(), 0U);
      }
    }
  }
}

TEST(VectorFile, BytesOfEveryLayout) {
  const TemporaryFolder folder;
  const std::uint8_t values[] = {1, 2, 3, 4, 5, 6};
  for (const char* suffix : {".u8bin", ".bvecs", ".npy"}) {
    VectorWriter writer(folder / (std::string("a") + suffix), ElementType::u8, 3);
    writer.append(MatrixView<const std::uint8_t>(values, 2, 3));
    writer.commit();
  }
  const auto bytes = [](const std::string& text) {
    const auto span = std::as_bytes(std::span(text));
    return std::vector<std::byte>(span.begin(), span.end());
  };
  EXPECT_EQ(read_all(folder / "a.u8bin"), bytes(std::string("\2\0\0\0\3\0\0\0\1\2\3\4\5\6", 14)));
  EXPECT_EQ(read_all(folder / "a.bvecs"), bytes(std::string("\3\0\0\0\1\2\3\3\0\0\0\4\5\6", 14)));
  std::string npy =
      std::string("\x93NUMPY\1\0\x76\0", 10) + "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }";
  npy.resize(127, ' ');
  EXPECT_EQ(read_all(folder / "a.npy"), bytes(npy + "\n\1\2\3\4\5\6"));
}

TEST(VectorFile, SuffixesAreMatchedInAnyCase) {
  const TemporaryFolder folder;
  for (const FormatCase& format : formats) {
    std::string suffix = format.suffix;
    for (char& letter : suffix) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
    const auto data = make_rows(6 * element_size(format.type));
    const RowsView rows(data.data(), format.type, 2, 3, 3 * element_size(format.type));
    for (const std::string& name : {"lower" + std::string(format.suffix), "UPPER" + suffix}) {
      VectorWriter writer(folder / name, format.type, 3);
      writer.append(rows);
      writer.commit();
    }
    EXPECT_EQ(read_all(folder / ("UPPER" + suffix)),
              read_all(folder / ("lower" + std::string(format.suffix))));
    const VectorFile file = VectorFile::open(folder / ("UPPER" + suffix));
    EXPECT_EQ(file.rows().type(), format.type);
    expect_rows(file.rows(), data);
    EXPECT_EQ(VectorReader(folder / ("UPPER" + suffix), 100).rows(), 2U);
  }
  Neighbors neighbors{Matrix<Id>(1, 1), Matrix<float>(1, 1)};
  neighbors.ids(0, 0) = 7;
  for (const char* const name : {"a.Ivecs", "a.IBIN", "a.NPY", "a.Bin"}) {
    write_neighbors(folder / name, neighbors);
    EXPECT_EQ(read_neighbors(folder / name).ids(0, 0), 7) << name;
  }
  EXPECT_ERROR(write_neighbors(folder / "a.NW", neighbors), invalid_argument, "storage.h");
  EXPECT_ERROR(VectorWriter(folder / "a.TXT", ElementType::f32, 4), invalid_argument, "found '.TXT'");
}

TEST(VectorFile, WithoutCommitNothingAppears) {
  const TemporaryFolder folder;
  const float values[4] = {};
  {
    VectorWriter writer(folder / "a.fbin", ElementType::f32, 4);
    writer.append(MatrixView<const float>(values, 1, 4));
    VectorWriter moved = std::move(writer);
    moved.append(MatrixView<const float>(values, 1, 4));
  }
  EXPECT_TRUE(folder.names().empty());
}

TEST(VectorFile, WriterRefuses) {
  const TemporaryFolder folder;
  EXPECT_ERROR(VectorWriter(folder / "a.fbin", ElementType::u8, 4), invalid_argument,
               ".fbin holds f32, got u8");
  EXPECT_ERROR(VectorWriter(folder / "a.bvecs", ElementType::i8, 4), invalid_argument, ".bvecs holds u8");
  EXPECT_ERROR(VectorWriter(folder / "a.ivecs", ElementType::f32, 4), invalid_argument, ".ivecs holds i32");
  EXPECT_ERROR(VectorWriter(folder / "a.bin", ElementType::f32, 4), invalid_argument, "got .bin");
  EXPECT_ERROR(VectorWriter(folder / "a.nw", ElementType::f32, 4), invalid_argument, "got .nw");
  EXPECT_ERROR(VectorWriter(folder / "a.fbin", ElementType::f32, 0), invalid_argument, "dimension");
  EXPECT_ERROR(VectorWriter(folder / "a.fbin", ElementType::f32, std::size_t{1} << 31), invalid_argument,
               "dimension");
  EXPECT_ERROR(
      VectorWriter(folder / "a.txt", ElementType::f32, 4), invalid_argument,
      ".npy .fbin .f16bin .bf16bin .u8bin .i8bin .ibin .fvecs .bvecs .ivecs .bin .nw expected, found '.txt'");
  EXPECT_ERROR(VectorWriter(folder / "none/a.fbin", ElementType::f32, 4), cannot_create, "none/a.fbin");
  VectorWriter writer(folder / "a.fbin", ElementType::f32, 4);
  const float values[8] = {};
  EXPECT_ERROR(writer.append({values, ElementType::f32, 1, 5, 20}), invalid_argument,
               "dimension 4 expected, got 5");
  EXPECT_ERROR(writer.append({values, ElementType::f16, 1, 4, 8}), invalid_argument, "f32 expected, got f16");
  EXPECT_ERROR(writer.append({values, ElementType::f32, 1, 4, 16, {DeviceKind::cuda, 1}}), invalid_argument,
               "cuda:1");
  writer.append({values, ElementType::f32, 2, 4, 16});
  writer.commit();
  EXPECT_EQ(VectorFile::open(folder / "a.fbin").rows().rows(), 2U);
  EXPECT_ERROR(writer.append({values, ElementType::f32, 1, 4, 16}), invalid_argument, "already complete");
}

TEST(VectorFile, FullDisk) {
  const TemporaryFolder folder;
  write_all(folder / "a.fbin", std::string("old"));
  const std::vector<float> values(1 << 20);
  const FailingCalls faults({.fail_call = 4, .error = ENOSPC});  // folder, temporary, lock, first write
  VectorWriter writer(folder / "a.fbin", ElementType::f32, 16);
  EXPECT_ERROR(writer.append(MatrixView<const float>(values.data(), 1 << 16, 16)), io,
               "No space left on device");
  EXPECT_ERROR(writer.commit(), io, "discarded");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.fbin"});
  EXPECT_EQ(fs::file_size(folder / "a.fbin"), 3U);
}

Neighbors some_neighbors(std::size_t rows, std::size_t k, Id step) {
  Neighbors neighbors{Matrix<Id>(rows, k), Matrix<float>(rows, k)};
  for (std::size_t i = 0; i < rows * k; ++i) {
    neighbors.ids.data()[i] = static_cast<Id>(i) * step - 1;  // begins with no_id
    neighbors.distances.data()[i] = static_cast<float>(i) / 3;
  }
  return neighbors;
}

bool same(const Matrix<Id>& a, const Matrix<Id>& b) {
  return a.rows() == b.rows() && a.cols() == b.cols() &&
         std::memcmp(a.data(), b.data(), a.rows() * a.cols() * sizeof(Id)) == 0;
}

TEST(NeighborsFile, RoundTrip) {
  const TemporaryFolder folder;
  for (const char* suffix : {".ivecs", ".ibin", ".npy", ".bin"}) {
    for (const Shape& shape : {Shape{1, 1}, Shape{100, 13}, Shape{0, 5}, Shape{3, 70'000}}) {
      const fs::path path = folder / (std::string("a") + suffix);
      const Neighbors written = some_neighbors(shape.rows, shape.dim, 1000);
      write_neighbors(path, written);
      const Neighbors read = read_neighbors(path);
      if (shape.rows != 0) {
        EXPECT_TRUE(same(read.ids, written.ids)) << path;
      }
      EXPECT_EQ(read.ids.rows(), shape.rows);
      if (std::string(suffix) != ".bin") {
        EXPECT_EQ(read.distances.rows() + read.distances.cols(), 0U);
      } else {
        ASSERT_EQ(read.distances.rows(), shape.rows);
        ASSERT_EQ(read.distances.cols(), shape.dim);
        EXPECT_EQ(std::memcmp(read.distances.data(), written.distances.data(), shape.rows * shape.dim * 4),
                  0);
      }
    }
  }
}

TEST(NeighborsFile, WideIdsNeedAWideFormat) {
  const TemporaryFolder folder;
  const Neighbors wide = some_neighbors(2, 3, 3'000'000'000);
  write_neighbors(folder / "a.npy", wide);
  EXPECT_TRUE(same(read_neighbors(folder / "a.npy").ids, wide.ids));
  for (const char* suffix : {".ivecs", ".ibin", ".bin"})
    EXPECT_ERROR(write_neighbors(folder / (std::string("b") + suffix), wide), invalid_argument, "2999999999");
  EXPECT_EQ(folder.names().size(), 1U);
  EXPECT_ERROR(write_neighbors(folder / "a.nw", wide), invalid_argument, "storage.h");
  EXPECT_ERROR(write_neighbors(folder / "a.fvecs", wide), invalid_argument, ".fvecs holds f32");
  EXPECT_ERROR(write_neighbors(folder / "a.bin", Neighbors{Matrix<Id>(1, 1), {}}), invalid_argument,
               "one shape");
  EXPECT_ERROR(write_neighbors(folder / "a.npy", Neighbors{}), invalid_argument, "at least one neighbour");
}

TEST(NeighborsFile, Containers) {
  const TemporaryFolder folder;
  SavedNeighbors saved;
  saved.neighbors = some_neighbors(4, 5, 7);
  save(saved, folder / "a.nw");
  const Neighbors read = read_neighbors(folder / "a.nw");
  EXPECT_TRUE(same(read.ids, saved.neighbors.ids));
  EXPECT_EQ(read.distances(3, 4), saved.neighbors.distances(3, 4));
}

TEST(NeighborsFile, VectorsAndIdsAreToldApart) {
  const TemporaryFolder folder;
  write_neighbors(folder / "ids.npy", some_neighbors(2, 3, 1));
  write_neighbors(folder / "ids.ivecs", some_neighbors(2, 3, 1));
  write_neighbors(folder / "gt.bin", some_neighbors(2, 3, 1));
  VectorWriter writer(folder / "v.npy", ElementType::f32, 3);
  writer.commit();
  EXPECT_ERROR(VectorFile::open(folder / "ids.npy"), invalid_argument, "found i64 numbers, which are ids");
  EXPECT_ERROR(VectorFile::open(folder / "ids.ivecs"), invalid_argument, "found i32 numbers, which are ids");
  EXPECT_ERROR(VectorReader(folder / "ids.ivecs", 100), invalid_argument, "found i32 numbers, which are ids");
  EXPECT_ERROR(VectorFile::open(folder / "gt.bin"), invalid_argument, ".bin holds neighbours");
  EXPECT_ERROR(read_neighbors(folder / "v.npy"), invalid_argument,
               "ids expected (i32 or i64), found elements f32");
  EXPECT_ERROR(read_neighbors(folder / "none.ibin"), not_found, "none.ibin: No such file");
}

}  // namespace
}  // namespace nearwise
