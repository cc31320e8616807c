// Vectors that stay in a file of their own.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/changed_metadata.h"
#include "io/expect_error.h"
#include "io/reseal.h"
#include "io/temporary_folder.h"
#include "ivf/ivf_state.h"
#include "nearwise/exact.h"
#include "nearwise/ivf.h"
#include "nearwise/storage.h"
#include "nearwise/vector_file.h"
#include "support/error_of.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

namespace fs = std::filesystem;
using support::error_of;

constexpr std::size_t base_rows = 600;
constexpr std::size_t dim = 9;

Context one_thread() { return Context::cpu({.threads = 1}); }

const support::Problem& problem() {
  static const support::Problem made = support::make_problem(
      {.kind = support::Kind::normal, .rows = base_rows, .queries = 20, .dim = dim, .seed = 91});
  return made;
}

class LinkedFile : public testing::TestWithParam<const char*> {
 protected:
  LinkedFile() : path_(folder_ / (std::string("base") + GetParam())) { write(path_, problem().base); }

  static void write(const fs::path& path, RowsView rows) {
    VectorWriter writer(path, rows.type(), rows.dim());
    writer.append(rows);
    writer.commit();
  }

  IvfOptions options(const Encoding& encoding = Pq{.code_bytes = 3}) const {
    return {.lists = 8, .encoding = encoding, .vectors = VectorStorage::file, .vector_file = path_};
  }

  const testing_io::TemporaryFolder folder_;
  const fs::path path_;
};
// With a header and without gaps, and with gaps between rows that are not aligned.
INSTANTIATE_TEST_SUITE_P(Formats, LinkedFile, testing::Values(".fbin", ".fvecs", ".npy"),
                         [](const auto& tested) { return std::string(tested.param).substr(1); });

void expect_same(const Neighbors& left, const Neighbors& right) {
  EXPECT_TRUE(support::same(support::as_expected(left), right));
}

// Every use of the vectors.
void expect_same_answers(const Ivf& kept, const Ivf& linked) {
  const RowsView queries = problem().queries;
  EXPECT_EQ(kept.size(), linked.size());
  for (const IvfSearchOptions& options : {IvfSearchOptions(), IvfSearchOptions{.probes = 8, .candidates = 30},
                                          IvfSearchOptions{.codes_only = true}})
    for (const std::size_t count : {1UL, 20UL})
      expect_same(kept.search(one_thread(), queries.slice(0, count), 7, options),
                  linked.search(one_thread(), queries.slice(0, count), 7, options));
  std::vector<Id> some;
  for (const Id id : kept.ids())
    if (id % 3 == 0) some.push_back(id);
  for (const std::vector<Id>& allowed : {some, std::vector<Id>(some.begin(), some.begin() + 5)})
    for (const std::optional<std::size_t> probes :
         {std::optional<std::size_t>(), std::optional<std::size_t>(4)})
      expect_same(
          kept.search(one_thread(), queries, 7, {.probes = probes, .filter = Filter::allow(allowed)}),
          linked.search(one_thread(), queries, 7, {.probes = probes, .filter = Filter::allow(allowed)}));
  const RangeNeighbors near = kept.range_search(one_thread(), queries, 9, {.probes = 8});
  const RangeNeighbors found = linked.range_search(one_thread(), queries, 9, {.probes = 8});
  EXPECT_FALSE(near.ids.empty());
  EXPECT_EQ(near.ids, found.ids);
  EXPECT_EQ(near.distances, found.distances);
  Matrix<Id> candidates(20, 3);
  for (std::size_t i = 0; i < 60; ++i) candidates.data()[i] = kept.ids()[i * 7 % kept.size()];
  expect_same(kept.rerank(one_thread(), queries, candidates.view(), 2),
              linked.rerank(one_thread(), queries, candidates.view(), 2));
  Matrix<float> left(some.size(), dim);
  Matrix<float> right(some.size(), dim);
  kept.get(some, left.view());
  linked.get(some, right.view());
  EXPECT_TRUE(std::equal(left.data(), left.data() + some.size() * dim, right.data()));
}

TEST_P(LinkedFile, AnswersAreThoseOfKeptVectors) {
  for (const Encoding& encoding :
       {Encoding(Pq{.code_bytes = 3}), Encoding(Lsq{.code_bytes = 2, .rounds = 1})}) {
    const Ivf kept = Ivf::build(one_thread(), problem().base, {.lists = 8, .encoding = encoding});
    const Ivf linked = Ivf::build(one_thread(), problem().base, options(encoding));
    EXPECT_EQ(linked.calibration(), kept.calibration());
    EXPECT_EQ(linked.vectors(), VectorStorage::file);
    EXPECT_EQ(linked.vector_file(), fs::absolute(path_));
    EXPECT_EQ(linked.vector_bytes(), 4U);
    EXPECT_TRUE(linked.keeps_vectors());
    expect_same_answers(kept, linked);
    save(linked, folder_ / "index.nw");
    const Ivf loaded = load_ivf(one_thread(), folder_ / "index.nw");
    EXPECT_EQ(loaded.vector_file(), linked.vector_file());
    expect_same_answers(kept, loaded);
  }
}

TEST_P(LinkedFile, IdsAreTheUsers) {
  const RowsView base = problem().base;
  std::vector<Id> ids(base_rows);
  for (std::size_t i = 0; i < base_rows; ++i)
    ids[i] = static_cast<Id>(1'000'000 + 7 * ((i * 37) % base_rows));
  Ivf kept = Ivf::train(one_thread(), base, {.lists = 8, .encoding = Pq{.code_bytes = 3}});
  Ivf linked = Ivf::train(one_thread(), base, options());
  // In two calls: the second takes the rows that follow.
  for (Ivf* const index : {&kept, &linked}) {
    index->add(one_thread(), base.slice(0, 250), std::span(ids).first(250));
    index->add(one_thread(), base.slice(250, 350), std::span(ids).subspan(250));
    index->remove(one_thread(), std::span(ids).subspan(100, 200));
  }
  expect_same_answers(kept, linked);
  save(linked, folder_ / "index.nw");
  Ivf loaded = load_ivf(one_thread(), folder_ / "index.nw");
  expect_same_answers(kept, loaded);
  // All rows of the file have been added; only those with the numbers of their ids can be added again.
  const Error error = error_of([&] { loaded.add(one_thread(), base.slice(0, 2), std::array<Id, 2>{5, 6}); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_NE(std::string(error.what()).find("from row 600 on"), std::string::npos) << error.what();
  EXPECT_EQ(loaded.size(), kept.size());
  loaded.add(one_thread(), base.slice(5, 2), std::array<Id, 2>{5, 6});
  Matrix<float> vector(1, dim);
  loaded.get(std::array<Id, 1>{6}, vector.view());
  EXPECT_EQ(std::memcmp(vector.data(), base.row(6), dim * sizeof(float)), 0);
}

TEST_P(LinkedFile, PartsAndMerges) {
  const RowsView base = problem().base;
  const Ivf whole = Ivf::build(one_thread(), base, options());
  Ivf merged = whole.empty_copy();
  std::vector<Id> ids(base_rows);
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<fs::path> files;
  for (std::size_t part = 0; part < 3; ++part) {
    Ivf own = whole.empty_copy();
    own.add(one_thread(), base.slice(200 * part, 200), std::span(ids).subspan(200 * part, 200));
    merged.merge(one_thread(), own);
    files.push_back(folder_ / ("part" + std::to_string(part) + ".nw"));
    save(own, files.back());
  }
  expect_same_answers(whole, merged);
  merge_ivf_files(one_thread(), files, folder_ / "merged.nw");
  const Ivf from_files = load_ivf(one_thread(), folder_ / "merged.nw");
  expect_same_answers(whole, from_files);
  const testing_io::TemporaryFolder elsewhere;
  merge_ivf_files(one_thread(), files, elsewhere / "merged.nw");
  EXPECT_EQ(load_ivf(one_thread(), elsewhere / "merged.nw").vector_file(), path_);
  const Ivf part = whole.part(one_thread(), 100, 300);
  EXPECT_EQ(part.size(), 300U);
  part.search(one_thread(), problem().queries, 5);
  // Vectors of another file cannot be merged.
  write(folder_ / "other.fbin", RowsView(problem().base).slice(0, 300));
  IvfOptions other = options();
  other.vector_file = folder_ / "other.fbin";
  Ivf stranger = Ivf::train(one_thread(), base, other);
  EXPECT_EQ(error_of([&] { stranger.merge(one_thread(), whole); }).code(), ErrorCode::invalid_argument);
}

TEST_P(LinkedFile, AMovedFileIsFoundNearTheIndexOrNamed) {
  const Ivf index = Ivf::build(one_thread(), problem().base, options());
  const testing_io::TemporaryFolder elsewhere;
  save(index, elsewhere / "index.nw");
  const auto load = [&] { return load_ivf(one_thread(), elsewhere / "index.nw"); };
  expect_same_answers(index, load());
  fs::copy_file(path_, elsewhere / path_.filename().string());
  fs::remove(path_);
  expect_same_answers(index, load());
  EXPECT_EQ(load().vector_file(), fs::absolute(elsewhere / path_.filename().string()));
  fs::remove(elsewhere / path_.filename().string());
  const Error missing = error_of([&] { load(); });
  EXPECT_EQ(missing.code(), ErrorCode::not_found);
  EXPECT_NE(std::string(missing.what()).find(path_.string()), std::string::npos) << missing.what();
  // Another file under its name, of the same length.
  support::Problem changed = support::make_problem(
      {.kind = support::Kind::normal, .rows = base_rows, .queries = 1, .dim = dim, .seed = 92});
  write(path_, changed.base);
  const Error wrong = error_of([&] { load(); });
  EXPECT_EQ(wrong.code(), ErrorCode::corrupt);
  EXPECT_NE(std::string(wrong.what()).find("checksum"), std::string::npos) << wrong.what();
}

TEST_P(LinkedFile, AnUnreadableFileDoesNotHideTheOneNextToTheIndex) {
  const Ivf index = Ivf::build(one_thread(), problem().base, options());
  const fs::path elsewhere = folder_ / "elsewhere";
  fs::create_directory(elsewhere);
  save(index, elsewhere / "index.nw");
  fs::copy_file(path_, elsewhere / path_.filename());
  const std::string text = "no vectors";
  testing_io::write_all(path_, std::as_bytes(std::span(text)));
  EXPECT_EQ(load_ivf(one_thread(), elsewhere / "index.nw").size(), base_rows);
  fs::remove(elsewhere / path_.filename());
  const Error error = error_of([&] { load_ivf(one_thread(), elsewhere / "index.nw"); });
  EXPECT_EQ(error.code(), ErrorCode::corrupt);
  EXPECT_NE(std::string(error.what()).find(path_.string() + "' cannot be read"), std::string::npos);
}

TEST_P(LinkedFile, AFolderOfBothCanBeMoved) {
  const Ivf index = Ivf::build(one_thread(), problem().base, options());
  save(index, folder_ / "index.nw");
  const testing_io::TemporaryFolder elsewhere;
  fs::copy_file(folder_ / "index.nw", elsewhere / "index.nw");
  fs::copy_file(path_, elsewhere / path_.filename().string());
  // Not what is left behind.
  EXPECT_EQ(load_ivf(one_thread(), elsewhere / "index.nw").vector_file(),
            fs::absolute(elsewhere / path_.filename().string()));
}

TEST_P(LinkedFile, WrongArguments) {
  const RowsView base = problem().base;
  const auto refuses = [&](const IvfOptions& wrong, RowsView rows, const std::string& words) {
    const Error error = error_of([&] { Ivf::build(one_thread(), rows, wrong); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  };
  refuses(options(), base.slice(1, 599), "vector 0 is not row 0");
  IvfOptions keeps = options();
  keeps.vectors = VectorStorage::keep;
  refuses(keeps, base, "vector_file is for vectors in a file");
  refuses(options(Flat{}), base, "vectors must be keep, got file");
  const support::Problem narrow = support::make_problem({.rows = 600, .queries = 1, .dim = 3, .seed = 1});
  refuses(options(Pq{.code_bytes = 2}), narrow.base, "vectors of 3 elements");
  const support::Problem bytes = support::make_problem({.rows = 600,
                                                        .queries = 1,
                                                        .dim = dim,
                                                        .base_type = ElementType::u8,
                                                        .query_type = ElementType::u8,
                                                        .seed = 1});
  refuses(options(), bytes.base, "are of f32, got u8");
  IvfOptions missing = options();
  missing.vector_file = folder_ / "missing.fbin";
  EXPECT_EQ(error_of([&] { Ivf::build(one_thread(), base, missing); }).code(), ErrorCode::not_found);
}

TEST_P(LinkedFile, ARowNumberBeyondTheFileIsDamage) {
  const Ivf index = Ivf::build(one_thread(), problem().base, options());
  save(index, folder_ / "index.nw");
  std::vector<std::byte> bytes = testing_io::read_all(folder_ / "index.nw");
  const ContainerInfo info = inspect(folder_ / "index.nw");
  const auto section = std::ranges::find(info.sections, "vectors", &SectionInfo::name);
  ASSERT_NE(section, info.sections.end());
  bytes[section->offset + 2] = std::byte{1};  // 65536 more
  testing_io::reseal(bytes);
  testing_io::write_all(folder_ / "damaged.nw", bytes);
  const Error error = error_of([&] { load_ivf(one_thread(), folder_ / "damaged.nw"); });
  EXPECT_EQ(error.code(), ErrorCode::corrupt);
  EXPECT_NE(std::string(error.what()).find("vectors, row 0: row numbers below 600 expected"),
            std::string::npos)
      << error.what();
}

TEST_P(LinkedFile, NumbersOfTheFileAreBounded) {
  const fs::path path = folder_ / "index.nw";
  save(Ivf::build(one_thread(), problem().base, options()), path);
  const auto load = [](const fs::path& file) { load_ivf(one_thread(), file); };
  testing_io::expect_bound(path, "/vectors/next_row", base_rows, load);

  const fs::path changed = folder_ / "changed.nw";
  const nlohmann::json good = testing_io::metadata_of(path);
  nlohmann::json metadata = good;
  metadata["vectors"]["next_row"] = base_rows - 1;
  testing_io::copy_with_metadata(path, changed, metadata);
  EXPECT_ERROR(load(changed), corrupt, "next_row of 600 to 600 expected, 599 found");

  metadata["vectors"]["next_row"] = std::uint64_t{1} << 32;
  testing_io::copy_with_metadata(path, changed, metadata);
  EXPECT_ERROR(merge_ivf_files(one_thread(), std::vector{changed}, folder_ / "merged.nw"), corrupt,
               "next_row of at most 4294967294 expected");

  metadata = good;
  metadata["vectors"]["bytes"] = std::uint64_t{1} << 63;
  testing_io::copy_with_metadata(path, changed, metadata);
  EXPECT_ERROR(load(changed), corrupt, "bytes of at most 9223372036854775807 expected");
}

}  // namespace
}  // namespace nearwise
