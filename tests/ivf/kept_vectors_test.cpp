// Vectors that an index of codes keeps, and vectors by their ids.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <vector>

#include "core/convert.h"
#include "io/temporary_folder.h"
#include "ivf/ivf_state.h"
#include "nearwise/exact.h"
#include "nearwise/ivf.h"
#include "support/error_of.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::error_of;
using support::Problem;

constexpr std::size_t base_rows = 600;
constexpr std::size_t dim = 9;

Context one_thread() { return Context::cpu({.threads = 1}); }

const Problem& problem() {
  static const Problem made = support::make_problem(
      {.kind = support::Kind::normal, .rows = base_rows, .queries = 20, .dim = dim, .seed = 91});
  return made;
}

Ivf built(VectorStorage vectors, const Encoding& encoding = Pq{.code_bytes = 3}) {
  return Ivf::build(one_thread(), problem().base, {.lists = 8, .encoding = encoding, .vectors = vectors});
}

void expect_same(const Neighbors& left, const Neighbors& right) {
  ASSERT_EQ(left.ids.rows(), right.ids.rows());
  ASSERT_EQ(left.ids.cols(), right.ids.cols());
  const std::size_t count = left.ids.rows() * left.ids.cols();
  EXPECT_TRUE(std::equal(left.ids.data(), left.ids.data() + count, right.ids.data()));
  EXPECT_TRUE(std::equal(left.distances.data(), left.distances.data() + count, right.distances.data()));
}

// The same index that keeps nothing, re-ranked by the vectors that are given.
class Storage : public testing::TestWithParam<VectorStorage> {};
INSTANTIATE_TEST_SUITE_P(Vectors, Storage,
                         testing::Values(VectorStorage::keep, VectorStorage::f16, VectorStorage::u8),
                         [](const auto& tested) { return std::string(name(tested.param)); });

TEST_P(Storage, SearchesReRankByWhatIsKept) {
  for (const Encoding& encoding :
       {Encoding(Pq{.code_bytes = 3}), Encoding(Lsq{.code_bytes = 2, .rounds = 1})}) {
    const Ivf index = built(GetParam(), encoding);
    const Ivf bare = built(VectorStorage::none, encoding);
    Matrix<float> kept(base_rows, dim);
    std::vector<Id> ids(base_rows);
    std::iota(ids.begin(), ids.end(), 0);
    index.get(ids, kept.view());
    const IvfSearchOptions by_kept = {.probes = 4, .candidates = 40};
    const IvfSearchOptions by_rows = {.probes = 4, .rerank = RowsView(kept.view()), .candidates = 40};
    for (const Context& context : support::every_instruction_set())
      for (const std::size_t queries : {1UL, 20UL})
        expect_same(index.search(context, RowsView(problem().queries).slice(0, queries), 7, by_kept),
                    bare.search(context, RowsView(problem().queries).slice(0, queries), 7, by_rows));
  }
}

TEST_P(Storage, WhatIsKeptIsNearTheVector) {
  const Ivf index = built(GetParam());
  const double error = GetParam() == VectorStorage::keep  ? 0
                       : GetParam() == VectorStorage::f16 ? 0x1p-11
                                                          : 0.02;
  std::vector<double> given(dim);
  for (Id id = 0; id < static_cast<Id>(base_rows); ++id) {
    Matrix<float> found(1, dim);
    index.get({&id, 1}, found.view());
    row_to_double(problem().base, static_cast<std::size_t>(id), given.data());
    for (std::size_t i = 0; i < dim; ++i)
      ASSERT_NEAR(found(0, i), given[i], error * std::max(1.0, std::abs(given[i])));
  }
  EXPECT_EQ(index.keeps_vectors(), GetParam() == VectorStorage::keep);
}

TEST_P(Storage, FilesMergesAndPartsCarryIt) {
  const testing_io::TemporaryFolder folder;
  const Ivf whole = built(GetParam());
  save(whole, folder / "whole.nw");
  const Ivf loaded = load_ivf(one_thread(), folder / "whole.nw");
  EXPECT_EQ(loaded.vectors(), GetParam());
  EXPECT_EQ(loaded.vector_bytes(), whole.vector_bytes());
  expect_same(whole.search(one_thread(), problem().queries, 5),
              loaded.search(one_thread(), problem().queries, 5));
  // Parts merged in memory, and as files.
  Ivf merged = whole.empty_copy();
  std::vector<std::filesystem::path> files;
  for (std::size_t first = 0; first < base_rows; first += 200) {
    const Ivf part = loaded.part(one_thread(), first, 200);
    merged.merge(one_thread(), part);
    files.push_back(folder / ("part" + std::to_string(first) + ".nw"));
    save(part, files.back());
  }
  expect_same(whole.search(one_thread(), problem().queries, 5),
              merged.search(one_thread(), problem().queries, 5));
  merge_ivf_files(one_thread(), files, folder / "merged.nw");
  EXPECT_EQ(testing_io::read_all(folder / "merged.nw"), testing_io::read_all(folder / "whole.nw"));
}

// Would catch: a mapped list that is read after it was copied, or vectors that do not move with their codes.
TEST_P(Storage, ChangesOfALoadedIndexKeepVectorsWithTheirCodes) {
  const testing_io::TemporaryFolder folder;
  save(built(GetParam()), folder / "index.nw");
  Ivf index = load_ivf(one_thread(), folder / "index.nw");
  std::vector<Id> gone;
  for (Id id = 0; id < static_cast<Id>(base_rows); id += 3) gone.push_back(id);
  EXPECT_EQ(index.remove(one_thread(), gone), gone.size());
  std::vector<Id> again = gone;
  for (Id& id : again) id += 1'000;
  Matrix<float> removed(gone.size(), dim);
  std::vector<double> row(dim);
  for (std::size_t i = 0; i < gone.size(); ++i) {
    row_to_double(problem().base, static_cast<std::size_t>(gone[i]), row.data());
    std::ranges::transform(row, removed.row(i).begin(),
                           [](double value) { return static_cast<float>(value); });
  }
  EXPECT_EQ(index.add(one_thread(), RowsView(removed.view()), again), again.size());
  index.compact();
  const Ivf fresh = built(GetParam());
  Neighbors expected = fresh.search(one_thread(), problem().queries, 6, {.probes = 8, .candidates = 600});
  Neighbors found = index.search(one_thread(), problem().queries, 6, {.probes = 8, .candidates = 600});
  for (std::size_t i = 0; i < 20 * 6; ++i) {
    const Id id = found.ids.data()[i];
    EXPECT_EQ(id >= 1'000 ? id - 1'000 : id, expected.ids.data()[i]);
    EXPECT_EQ(found.distances.data()[i], expected.distances.data()[i]);
  }
}

TEST(KeptVectors, CodesOnlyAndNoneAreTheSame) {
  const Ivf index = built(VectorStorage::keep);
  const Ivf bare = built(VectorStorage::none);
  expect_same(index.search(one_thread(), problem().queries, 5, {.probes = 3, .codes_only = true}),
              bare.search(one_thread(), problem().queries, 5, {.probes = 3}));
  EXPECT_EQ(bare.vector_bytes(), 0U);
  EXPECT_FALSE(bare.calibration()->candidates);
  EXPECT_TRUE(index.calibration()->candidates);
}

TEST(KeptVectors, BytesAreKeptAsTheyAre) {
  const support::Rows bytes(support::generate(support::Kind::integers, 400, 8, 3), ElementType::i8);
  const Ivf index = Ivf::build(one_thread(), bytes,
                               {.lists = 4, .encoding = Pq{.code_bytes = 2}, .vectors = VectorStorage::u8});
  EXPECT_EQ(index.vector_bytes(), 8U);
  EXPECT_TRUE(index.keeps_vectors());
}

TEST(KeptVectors, WhatCannotBeKeptIsRefused) {
  Ivf index = built(VectorStorage::f16);
  Matrix<float> large(1, dim);
  std::fill_n(large.data(), dim, 1e5F);
  EXPECT_NE(
      std::string(error_of([&] { index.add(one_thread(), RowsView(large.view())); }).what()).find("65504"),
      std::string::npos);
  EXPECT_EQ(error_of([&] { built(VectorStorage::f16, Flat{}); }).code(), ErrorCode::invalid_argument);
}

TEST(KeptVectors, RowsOfAnotherOrderAreRefused) {
  const Ivf index = built(VectorStorage::none);
  Matrix<float> reversed(base_rows, dim);
  std::vector<double> row(dim);
  for (std::size_t i = 0; i < base_rows; ++i) {
    row_to_double(problem().base, base_rows - 1 - i, row.data());
    std::ranges::transform(row, reversed.row(i).begin(),
                           [](double value) { return static_cast<float>(value); });
  }
  const Error error = error_of(
      [&] { index.search(one_thread(), problem().queries, 5, {.rerank = RowsView(reversed.view())}); });
  EXPECT_NE(std::string(error.what()).find("vectors of the index"), std::string::npos) << error.what();
}

TEST(IvfIds, AreFoundAndListed) {
  Ivf index = built(VectorStorage::keep);
  EXPECT_TRUE(index.contains(0));
  EXPECT_TRUE(index.contains(599));
  EXPECT_FALSE(index.contains(600));
  EXPECT_FALSE(index.contains(-1));
  const std::vector<Id> gone = {3, 599, 3, 7'000};
  EXPECT_EQ(index.remove(one_thread(), gone), 2U);
  EXPECT_FALSE(index.contains(3));
  EXPECT_EQ(index.ids().size(), base_rows - 2);
  EXPECT_TRUE(std::ranges::is_sorted(index.ids()));
  const Id missing = 3;
  Matrix<float> out(1, dim);
  EXPECT_EQ(error_of([&] { index.get({&missing, 1}, out.view()); }).code(), ErrorCode::invalid_argument);
}

class Duplicates : public testing::TestWithParam<OnDuplicate> {};
INSTANTIATE_TEST_SUITE_P(OnDuplicate, Duplicates,
                         testing::Values(OnDuplicate::refuse, OnDuplicate::replace, OnDuplicate::keep),
                         [](const auto& tested) { return std::string(name(tested.param)); });

TEST_P(Duplicates, AreHandledAsAsked) {
  Ivf index = built(VectorStorage::keep);
  Matrix<float> rows(2, dim);
  std::fill_n(rows.data(), 2 * dim, 0.5F);
  const std::vector<Id> ids = {5, 1'000'000'000'000};
  Matrix<float> before(1, dim);
  index.get({ids.data(), 1}, before.view());
  const auto add = [&] { return index.add(one_thread(), RowsView(rows.view()), ids, GetParam()); };
  if (GetParam() == OnDuplicate::refuse) {
    EXPECT_NE(std::string(error_of(add).what()).find("id 5 is in the index already"), std::string::npos);
    EXPECT_EQ(index.size(), base_rows);
    EXPECT_FALSE(index.contains(ids[1]));
    return;
  }
  EXPECT_EQ(add(), GetParam() == OnDuplicate::replace ? 2U : 1U);
  EXPECT_EQ(index.size(), base_rows + 1);
  Matrix<float> after(2, dim);
  index.get(ids, after.view());
  EXPECT_EQ(after(0, 0), GetParam() == OnDuplicate::replace ? 0.5F : before(0, 0));
  EXPECT_EQ(after(1, 0), 0.5F);
  EXPECT_EQ(index.ids().size(), base_rows + 1);
}

TEST(IvfIds, OfOneCallDiffer) {
  Ivf index = built(VectorStorage::keep);
  const std::vector<Id> ids = {1'000, 1'001, 1'000};
  Matrix<float> rows(3, dim);
  std::fill_n(rows.data(), 3 * dim, 0.5F);
  EXPECT_NE(std::string(error_of([&] { index.add(one_thread(), RowsView(rows.view()), ids); }).what())
                .find("1000 twice"),
            std::string::npos);
}

TEST(IvfIds, CandidatesFromElsewhereAreReRanked) {
  const Ivf index = built(VectorStorage::keep);
  const Neighbors exact = knn(one_thread(), problem().queries, problem().base, 30);
  Matrix<Id> shuffled(20, 32);
  for (std::size_t query = 0; query < 20; ++query) {
    std::ranges::reverse_copy(exact.ids.row(query), shuffled.row(query).begin());
    shuffled(query, 30) = no_id;
    shuffled(query, 31) = 123'456;
  }
  const Neighbors best = index.rerank(one_thread(), problem().queries, shuffled.view(), 10);
  for (std::size_t query = 0; query < 20; ++query)
    for (std::size_t i = 0; i < 10; ++i) {
      EXPECT_EQ(best.ids(query, i), exact.ids(query, i));
      EXPECT_EQ(best.distances(query, i), exact.distances(query, i));
    }
}

TEST(KeptVectors, CalibrationNeedsNoRows) {
  Ivf index = built(VectorStorage::keep);
  const Calibration by_kept = index.calibrate(one_thread(), {.target_recall = 0.8, .queries = 600});
  const Calibration by_rows =
      index.calibrate(one_thread(), problem().base, {.target_recall = 0.8, .queries = 600});
  EXPECT_EQ(by_kept, by_rows);
  Ivf bare = built(VectorStorage::none);
  EXPECT_EQ(error_of([&] { bare.calibrate(one_thread()); }).code(), ErrorCode::invalid_argument);
}

// Half precision: every number, and the halves between neighbours.
TEST(Float16, IsTheNearestNumber) {
  for (std::uint32_t bits = 0; bits < 0x7BFF; ++bits) {
    const float low = to_float(Float16{static_cast<std::uint16_t>(bits)});
    const float high = to_float(Float16{static_cast<std::uint16_t>(bits + 1)});
    ASSERT_EQ(to_float16(low).bits, bits);
    ASSERT_EQ(to_float16(-high).bits, bits + 1 + 0x8000);
    const float middle = low + (high - low) / 2;
    ASSERT_EQ(to_float16(middle).bits, bits + bits % 2) << bits;
    ASSERT_EQ(to_float16(std::nextafter(middle, high)).bits, bits + 1);
    ASSERT_EQ(to_float16(std::nextafter(middle, low)).bits, bits);
  }
  EXPECT_EQ(to_float16(65504).bits, 0x7BFF);
  EXPECT_EQ(to_float16(65519.9F).bits, 0x7BFF);
  EXPECT_EQ(to_float16(65520).bits, 0x7C00);
  EXPECT_TRUE(std::isnan(to_float(to_float16(NAN))));
}

}  // namespace
}  // namespace nearwise
