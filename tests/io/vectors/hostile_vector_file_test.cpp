// Headers that lie: refused with an Error that says why, without allocating what they ask for.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "io/expect_error.h"
#include "io/temporary_folder.h"
#include "io/vectors/npy_header.h"
#include "nearwise/vector_file.h"

namespace nearwise {
namespace {

using testing_io::TemporaryFolder;
using testing_io::write_all;

// Memory the process may still get while it lives: a header that is believed shows as Error(out_of_memory).
class LittleMemory {
 public:
  LittleMemory() {
    getrlimit(RLIMIT_AS, &before_);
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit = before_;
    limit.rlim_cur = pages * static_cast<std::uint64_t>(getpagesize()) + (std::uint64_t{32} << 20);
    setrlimit(RLIMIT_AS, &limit);
  }
  ~LittleMemory() { setrlimit(RLIMIT_AS, &before_); }
  LittleMemory(const LittleMemory&) = delete;
  LittleMemory& operator=(const LittleMemory&) = delete;

 private:
  rlimit before_{};
};

std::string little_endian(std::initializer_list<std::uint32_t> values) {
  std::string text;
  for (const std::uint32_t value : values) text.append(reinterpret_cast<const char*>(&value), 4);
  return text;
}

std::string npy(const std::string& dictionary, std::size_t data_bytes) {
  std::string text("\x93NUMPY\1\0", 8);
  const auto length = static_cast<std::uint16_t>(dictionary.size());
  text.append(reinterpret_cast<const char*>(&length), 2);
  return text + dictionary + std::string(data_bytes, '\1');
}

std::string npy(const std::string& descr, const std::string& order, const std::string& shape,
                std::size_t data_bytes) {
  return npy("{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }\n",
             data_bytes);
}

struct Hostile {
  const char* suffix;
  std::string content;
  ErrorCode code;
  const char* part;  // of the message
};

std::vector<Hostile> hostile_files() {
  constexpr auto corrupt = ErrorCode::corrupt;
  constexpr auto invalid = ErrorCode::invalid_argument;
  const std::string zeros(24, '\0');
  return {
      // u32 rows, u32 dim
      {".fbin", "", corrupt, "header of 8 bytes expected, found 0"},
      {".fbin", "1234567", corrupt, "header of 8 bytes expected, found 7"},
      {".fbin", little_endian({0xFFFFFFFF, 0x7FFFFFFF}), corrupt,
       "4294967295 * 8589934588 does not fit in 64 bits"},
      {".fbin", little_endian({2, 0xFFFFFFFF}), corrupt, "dimension of at most 2147483647"},
      {".fbin", little_endian({1000000000, 128}) + zeros, corrupt,
       "need a file of 512000000008 bytes, found 32"},
      {".fbin", little_endian({2, 3}) + zeros + "x", corrupt, "need a file of 32 bytes, found 33"},
      {".fbin", little_endian({2, 3}) + zeros.substr(1), corrupt, "need a file of 32 bytes, found 31"},
      {".fbin", little_endian({7, 0}), invalid, "dimension 0"},
      {".u8bin", little_endian({0, 5}) + zeros, corrupt, "need a file of 8 bytes"},
      {".bf16bin", little_endian({0x80000000, 0x40000000}), corrupt, "need a file of"},
      {".ibin", little_endian({3, 0xFFFFFFFE}), corrupt, "dimension"},
      {".ibin", little_endian({1, 1, 0x80000000}), corrupt,
       "ids of -1 or larger expected, found -2147483648"},
      // i32 dim in front of each row
      {".fvecs", "123", corrupt, "at least 4 bytes"},
      {".fvecs", little_endian({0, 0}), corrupt, "at least 1 expected, found 0"},
      {".fvecs", little_endian({0xFFFFFFFF, 0}), corrupt, "found -1"},
      {".fvecs", little_endian({0x7FFFFFFF, 0}), corrupt, "multiple of 8589934592 bytes"},
      {".fvecs", little_endian({2, 0, 0, 3, 0, 0}), corrupt,
       "row 1: dimension 2 expected as in row 0, found 3"},
      {".fvecs", little_endian({2, 0, 0, 2, 0}), corrupt, "multiple of 12 bytes"},
      {".bvecs", little_endian({1}) + "x" + little_endian({2}) + "x", corrupt, "row 1"},
      {".ivecs", little_endian({0x80000000, 0}), corrupt, "found -2147483648"},
      {".ivecs", little_endian({1, 0xFFFFFFFE}), corrupt, "found -2"},
      // ground truth
      {".bin", "123", corrupt, "header of 8 bytes"},
      {".bin", little_endian({0xFFFFFFFF, 0xFFFFFFFF}), corrupt, "does not fit in 64 bits"},
      {".bin", little_endian({0xFFFFFFFF, 0x10000000}), corrupt, "needs 9223372034707292168 bytes"},
      {".bin", little_endian({0xFFFFFFFF, 0}), corrupt, "at least one neighbour"},
      {".bin", little_endian({1, 1, 5}), corrupt, "needs 16 bytes, found 12"},
      {".bin", little_endian({1, 1, 0xFFFFFF00, 0}), corrupt, "found -256"},
      // .npy: the frame
      {".npy", "", corrupt, "not a .npy file"},
      {".npy", "\x93NUMP", corrupt, "not a .npy file"},
      {".npy", "PK\3\4 an .npz file", corrupt, "not a .npy file"},
      {".npy", std::string("\x93NUMPY\1\0", 8), corrupt, "cut off"},
      {".npy", std::string("\x93NUMPY\1\0\xFF\0{", 11), corrupt, "255 bytes expected, 1 found"},
      {".npy", std::string("\x93NUMPY\2\0\xFF\xFF\xFF\xFF{", 13), corrupt, "at most"},
      {".npy", std::string("\x93NUMPY\4\0\4\0{}  ", 14), invalid, "found 4.0"},
      {".npy", std::string("\x93NUMPY\1\1\4\0{}  ", 14), invalid, "found 1.1"},
      // .npy: elements and order
      {".npy", npy("'|O'", "False", "(2, 3)", 48), invalid, "Python objects"},
      {".npy", npy("'>f4'", "False", "(2, 3)", 24), invalid, "big-endian"},
      {".npy", npy("'<f8'", "False", "(2, 3)", 48), invalid,
       "found '<f8' (float64: save array.astype(numpy.float32) of it, or of ids array.astype(numpy.int64))"},
      {".npy", npy("'<c8'", "False", "(2, 3)", 48), invalid, "found '<c8'"},
      {".npy", npy("'<U3'", "False", "(2, 3)", 48), invalid, "found '<U3'"},
      {".npy", npy("[('a', '<f4')]", "False", "(2, 3)", 24), invalid, "structured"},
      {".npy", npy("'<f4'", "True", "(2, 3)", 24), invalid, "Fortran order"},
      // .npy: shapes
      {".npy", npy("'<f4'", "False", "(6,)", 24), invalid,
       "2 dimensions expected, found 1 (for one vector save array[None, :])"},
      {".npy", npy("'<f4'", "False", "()", 4), invalid, "2 dimensions expected, found 0"},
      {".npy", npy("'<f4'", "False", "(1, 2, 3)", 24), invalid, "2 dimensions expected, found 3"},
      {".npy", npy("'<f4'", "False", "(2, 3)", 25), corrupt, "found"},
      {".npy", npy("'<f4'", "False", "(2, 3)", 23), corrupt, "found"},
      {".npy", npy("'<f4'", "False", "(4, 0)", 0), invalid, "dimension 0"},
      {".npy", npy("'<f4'", "False", "(1000000000000, 128)", 24), corrupt, "need a file of"},
      {".npy", npy("'<f4'", "False", "(9223372036854775808, 2)", 0), corrupt, "does not fit in 64 bits"},
      {".npy", npy("'<f4'", "False", "(4611686018427387904, 1)", 0), corrupt, "does not fit in 64 bits"},
      {".npy", npy("'<f4'", "False", "(18446744073709551616, 1)", 0), corrupt, "does not fit in 64 bits"},
      {".npy", npy("'<f4'", "False", "(0, 18446744073709551615)", 0), corrupt, "dimension of at most"},
      {".npy", npy("'<f4'", "False", "(-1, 3)", 24), corrupt, "a number expected"},
      {".npy", npy("'<f4'", "False", "(2.0, 3)", 24), corrupt, "expected"},
      {".npy", npy("'<f4'", "False", "(0x2, 3)", 24), corrupt, "expected"},
      {".npy", npy("'<f4'", "False", "(02, 3)", 24), corrupt, "leading zeros"},
      // .npy: grammar
      {".npy", npy("'<f4'", "False", "(2, 3", 24), corrupt, "a number expected"},
      {".npy", npy("'<f4'", "False", "(2 3)", 24), corrupt, "expected"},
      {".npy", npy("'<f4'", "False", "((2, 3)", 24), corrupt, "a number expected"},
      {".npy", npy("'<f4'", "False", "[2, 3]", 24), corrupt, "'(' expected"},
      {".npy", npy("'<f4'", "0", "(2, 3)", 24), corrupt, "True or False"},
      {".npy", npy("'<f4", "False", "(2, 3)", 24), corrupt, "expected"},
      {".npy", npy("'<f4'", "False", "(2, 3)), (", 24), corrupt, "expected"},
      {".npy", npy("{'descr': '<f4', 'fortran_order': False, }", 24), corrupt, "missing"},
      {".npy", npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", 24), corrupt,
       "twice"},
      {".npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'x': 1}", 24), corrupt,
       "unknown"},
      {".npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} import os", 24), corrupt,
       "the end"},
      {".npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::string(5000, '(') + ")}", 24),
       corrupt, "number expected"},
      {".npy", npy("__import__('os').system('true')", 24), corrupt, "'{' expected"},
      {".npy", npy(std::string(300, '{'), 24), corrupt, "quotes expected"},
  };
}

TEST(HostileVectorFile, TheLimitOfTheseTestsIsReal) {
  constexpr std::size_t bytes = std::size_t{64} << 20;
  const LittleMemory limit;
  EXPECT_EQ(mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), MAP_FAILED);
}

TEST(HostileVectorFile, EveryLieIsRefused) {
  const TemporaryFolder folder;
  ASSERT_GT(hostile_files().size(), 20U);
  for (const Hostile& hostile : hostile_files()) {
    const auto path = folder / (std::string("hostile") + hostile.suffix);
    write_all(path, hostile.content);
    SCOPED_TRACE(std::string(hostile.suffix) + " expecting: " + hostile.part);
    const LittleMemory limit;
    const std::string suffix = hostile.suffix;
    const bool ids = suffix == ".ibin" || suffix == ".ivecs" || suffix == ".bin";
    EXPECT_TRUE(testing_io::throws_error([&] { read_neighbors(path); }, hostile.code, hostile.part));
    if (ids) continue;
    EXPECT_TRUE(testing_io::throws_error([&] { VectorFile::open(path); }, hostile.code, hostile.part));
    EXPECT_TRUE(testing_io::throws_error(
        [&] {
          VectorReader reader(path, std::size_t{1} << 40);
          while (reader.next().rows() != 0) {
          }
        },
        hostile.code, hostile.part));
  }
}

TEST(HostileVectorFile, WhatIsNoFile) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "a.fbin");
  EXPECT_ERROR(VectorFile::open(folder / "a.fbin"), invalid_argument, "found a folder");
  EXPECT_ERROR(VectorReader(folder / "a.fbin", 10), invalid_argument, "found a folder");
  EXPECT_ERROR(VectorFile::open(folder / "b.fbin"), not_found, "open " + (folder / "b.fbin").string());
  EXPECT_ERROR(VectorFile::open(folder / "a.fbin/b.fbin"), not_found, "");
  EXPECT_ERROR(VectorFile::open(folder / "a"), not_found, "open " + (folder / "a").string());
  for (const char* const name : {"a", ".fbin"}) {  // neither suffix nor magic number
    write_all(folder / name, little_endian({1, 1, 0}));
    EXPECT_ERROR(VectorFile::open(folder / name), invalid_argument, "found ''");
    EXPECT_ERROR(VectorReader(folder / name, 10), invalid_argument, "found ''");
  }
}

TEST(HostileVectorFile, TooLargeToMap) {
  const TemporaryFolder folder;
  write_all(folder / "a.u8bin", little_endian({1 << 20, 64}));
  std::filesystem::resize_file(folder / "a.u8bin", 8 + (std::size_t{64} << 20));
  {
    const LittleMemory limit;
    EXPECT_ERROR(VectorFile::open(folder / "a.u8bin"), out_of_memory, "map " + (folder / "a.u8bin").string());
    VectorReader reader(folder / "a.u8bin", 1 << 20);  // in chunks it is no matter
    EXPECT_EQ(reader.next().rows(), std::size_t{1} << 14);
  }
  VectorFile first = VectorFile::open(folder / "a.u8bin");
  VectorFile second = std::move(first);
  first = std::move(second);
  EXPECT_EQ(first.rows().rows(), std::size_t{1} << 20);
}

TEST(HostileVectorFile, ShortenedWhileItIsRead) {
  const TemporaryFolder folder;
  VectorWriter writer(folder / "a.u8bin", ElementType::u8, 8);
  const std::vector<std::uint8_t> values(800);
  writer.append(MatrixView<const std::uint8_t>(values.data(), 100, 8));
  writer.commit();
  VectorReader reader(folder / "a.u8bin", 80);
  EXPECT_EQ(reader.next().rows(), 10U);
  std::filesystem::resize_file(folder / "a.u8bin", 100);
  EXPECT_ERROR(
      {
        while (reader.next().rows() != 0) {
        }
      },
      io, "shorter");
}

TEST(NpyHeader, WhatOthersWrite) {
  const auto parse = [](const std::string& text) {
    return parse_npy_header(std::as_bytes(std::span(text)), "memory");
  };
  const std::string body = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  NpyHeader header = parse(npy(body + "          \n", 24));
  EXPECT_EQ(header.descr, "<f4");
  EXPECT_EQ(header.shape, (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(header.data_offset, 10 + body.size() + 11);
  for (const char version : {'\2', '\3'}) {
    std::string text("\x93NUMPY", 6);
    text += {version, '\0', static_cast<char>(body.size()), '\0', '\0', '\0'};
    EXPECT_EQ(parse(text + body).data_offset, 12 + body.size());
  }
  // Any order of keys, any quotes, space anywhere, no comma at the end.
  header = parse(npy(" {\"shape\" :( 2,3 ,),'fortran_order':True,\t'descr':\"|u1\"}", 0));
  EXPECT_EQ(header.descr, "|u1");
  EXPECT_TRUE(header.fortran_order);
  EXPECT_EQ(header.shape.size(), 2U);
  EXPECT_EQ(parse(make_npy_header("<f4", ~std::uint64_t{0}, ~std::uint64_t{0})).shape[1], ~std::uint64_t{0});
  EXPECT_EQ(make_npy_header("<f4", 0, 1).size(), make_npy_header("<f4", ~std::uint64_t{0}, 1).size());
}

TEST(NpyHeader, Bfloat16AndOddOffsets) {
  const TemporaryFolder folder;
  for (const char* descr : {"'<V2'", "'|V2'", "'bfloat16'"}) {
    write_all(folder / "a.npy", npy(descr, "False", "(2, 3)", 12));
    EXPECT_EQ(VectorFile::open(folder / "a.npy").rows().type(), ElementType::bf16);
  }
  // Data that begins at an odd address.
  std::string odd = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  odd.resize(odd.size() + (odd.size() % 2 == 0 ? 1 : 0), ' ');
  write_all(folder / "a.npy", npy(odd, 24));
  const VectorFile file = VectorFile::open(folder / "a.npy");
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file.rows().data()) % 2, 1U);
  EXPECT_EQ(file.rows().rows(), 2U);
}

}  // namespace
}  // namespace nearwise
